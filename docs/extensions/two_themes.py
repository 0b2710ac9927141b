"""Pictures that have a light and a dark form follow the theme of the site.

A page says so as the places that show Markdown understand it, by <picture> with a <source> for dark screens. Those follow
the screen only; the site has a button too.
"""

import re

_PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]+)">\s*'
    r'<img alt="(?P<alt>[^"]*)" src="(?P<light>[^"]+)">\s*</picture>'
)
_FORM = "```{{image}} {path}\n:alt: {alt}\n:class: only-{theme}\n```"


def _both(found):
    forms = [_FORM.format(path=found[theme], alt=found["alt"], theme=theme) for theme in ("light", "dark")]
    return "\n\n".join(forms)


def two_images(app, name, text):
    """Each <picture> as two images, of which the style sheet shows one."""
    text[0] = _PICTURE.sub(_both, text[0])


def setup(app):
    app.connect("source-read", two_images)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
