"""How Sphinx builds the site: `make docs`, without a network."""

import importlib.util
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER / "extensions"))

import covary

project = "covary"
author = "the covary developers"
copyright = author  # Sphinx prints it beneath each page
release = version = covary.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "command_help",
    "mathml",
    "own_members",
    "two_themes",
]
exclude_patterns = ["examples", "extensions", "pictures", "static", "templates"]
templates_path = ["templates"]
root_doc = "index"
smartquotes_action = "qe"  # two hyphens are a flag
suppress_warnings = ["myst.not_included"]

# Markdown as it also reads where it is stored: headings are targets, $ is mathematics.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

# One page for each public class and function, from the docstring.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_mock_imports = [] if importlib.util.find_spec("pyspark") else ["pyspark"]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = f"covary {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "github-dark"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
