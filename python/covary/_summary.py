"""The description of a fitted model: text for a console, tables for a notebook."""

from html import escape


class Summary(str):
    """The text that the command prints for a model; a notebook shows its tables."""

    def __new__(cls, description):
        summary = super().__new__(cls, description["text"])
        summary._description = description
        return summary

    def __repr__(self):
        # Without quotes, so that a console shows the tables as they are.
        return str(self)

    def __reduce__(self):
        return Summary, (self._description,)

    def _repr_html_(self):
        lines = [([label, value], ()) for label, value in self._description["lines"]]
        tables = [_table([], lines)]
        for table in self._description["tables"]:
            tables.append(_table(table["header"], [(row, table["right"]) for row in table["rows"]]))
            if table["note"] is not None:
                tables.append(f"<p>{escape(table['note'])}</p>")
        return f'<div class="covary-summary">{"".join(tables)}</div>'


def _table(header, rows):
    """A table of rows, each with the columns that are aligned to the right."""
    if not rows:
        return ""
    head = _row(header, rows[0][1], "th") if header else ""
    return f"<table>{head}{''.join(_row(cells, right, 'td') for cells, right in rows)}</table>"


def _row(cells, right, tag):
    sides = ("right" if column in right else "left" for column in range(len(cells)))
    shown = (f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>' for side, cell in zip(sides, cells))
    return f"<tr>{''.join(shown)}</tr>"
