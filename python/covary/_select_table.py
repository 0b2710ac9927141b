"""A table over numbers to choose from, as text and as HTML."""

from html import escape

import numpy as np


class SelectionTable:
    """Has `table`, a dict of columns, and `_advice`, a sentence."""

    _columns_shown: list

    def __repr__(self):
        header, lines = self._shown()
        widths = [max(map(len, column)) for column in zip(header, *lines)]
        rows = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in [header, *lines]]
        return "\n".join([*rows, self._advice()])

    def _repr_html_(self):
        header, lines = self._shown()
        head = "".join(f"<th>{escape(name)}</th>" for name in header)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in lines)
        return (
            f'<table class="covary-selection"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
            f"<p>{escape(self._advice())}</p>"
        )

    def _shown(self):
        names = [name for name in self._columns_shown if not np.isnan(self.table[name]).all()]
        return names, [[_cell(self.table[name][line]) for name in names] for line in self._lines_shown()]

    def _lines_shown(self):
        return range(len(next(iter(self.table.values()))))


def _cell(value):
    return "" if np.isnan(value) else f"{value:.6g}"
