"""Which members of a class its page explains: ours, and learned attributes once.

What scikit-learn's base classes bring is documented there. Learned attributes, such as `mean_`, stand in the section
Attributes of the class; python/tests/test_site.py sees to it that all of them do. Those that have no words there are
explained by their own docstring, which begins with their type.
"""

import inspect
import re

_WITHOUT_WORDS = re.compile(r"\s+:obj:`(\w+) <[^`]*>` : .*")


def skip(app, what, name, member, skipped, options):
    """True where a member is left out, None where nobody minds."""
    if what != "class":
        return None
    if isinstance(member, property):
        return name.endswith("_") or None
    module = getattr(member, "__module__", None) or ""
    return module.startswith(("sklearn", "pyspark")) or None


def explain_attributes(app, what, name, member, options, lines):
    """Puts the whole docstring of an attribute where numpydoc has put its first line."""
    if what != "class":
        return
    for place, line in enumerate(lines[:-1]):
        attribute = _WITHOUT_WORDS.fullmatch(line)
        if attribute:
            margin = re.match(r"\s*", lines[place + 1])[0]
            lines[place + 1] = margin + _meaning(getattr(member, attribute[1]))


def _meaning(attribute):
    text = " ".join(inspect.getdoc(attribute).split())
    _, _, meaning = text.partition(": ")
    return meaning.removesuffix(".")  # a letter and a full stop would begin a list


def setup(app):
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", explain_attributes, priority=600)  # after numpydoc, which has 500
    return {"parallel_read_safe": True, "parallel_write_safe": True}
