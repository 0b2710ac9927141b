"""Formulas as MathML, which browsers draw themselves: no script, no font and no network is needed."""

from latex2mathml.converter import convert


def _mathml(latex, display):
    drawn = convert(latex, display=display)
    # The converter takes "is distributed as" for a letter; as an operator it has space around it.
    return drawn.replace("<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>")


def inline(visitor, node):
    """A formula within a sentence."""
    visitor.body.append(_mathml(node.astext(), "inline"))
    raise _skipped()


def block(visitor, node):
    """A formula on its own line, which scrolls where the page is too narrow."""
    visitor.body.append(f'<div class="formula">{_mathml(node.astext(), "block")}</div>\n')
    raise _skipped()


def _skipped():
    from docutils.nodes import SkipNode

    return SkipNode()


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
