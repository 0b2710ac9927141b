"""Tables as people have them, and what pandas reads when it is told how they are written.

Writes the tables beside this script, and `expected.json`: for each the options, the names and the cells of the columns
that pandas reads as numbers. Needs pandas, openpyxl, odfpy and msoffcrypto-tool; the tests need only what it has written.

    python crates/io/tests/tables/make.py
"""

import csv
import datetime
import io
import json
import pathlib

import msoffcrypto.format.ooxml
import numpy as np
import openpyxl
import pandas as pd

HERE = pathlib.Path(__file__).parent
COLUMNS = {"delimiter": "sep", "decimal": "decimal", "na": "na_values", "encoding": "encoding", "sheet": "sheet_name"}
expected = []

rng = np.random.default_rng(18)
FRAME = pd.DataFrame(
    {
        "site": [f"s{i}" for i in range(8)],
        "height": np.round(rng.normal(170, 8, 8), 2),
        "weight": np.round(rng.normal(70, 9, 8), 1),
        "count": rng.integers(0, 9, 8),
    }
)
HOLES = FRAME.assign(weight=FRAME.weight.where(rng.random(8) > 0.4))
LATIN = FRAME.rename(columns={"height": "größe", "site": "où"})


def table(name, content, refused=False, index=None, **told):
    """A file, and what pandas makes of it with what it is told."""
    path = HERE / name
    if content is not None:
        path.write_bytes(content.encode(told.get("encoding", "utf-8")) if isinstance(content, str) else content)
    entry = {"file": name, "told": {key: value for key, value in told.items() if key != "skip"}, "refused": refused}
    if not refused:
        entry.update(pandas(path, index, told))
    expected.append(entry)


def pandas(path, index, told):
    options = {COLUMNS[key]: value for key, value in told.items() if key in COLUMNS}
    options["header"] = 0 if told.get("header", True) else None
    options["skiprows"] = told.get("skip", 0)
    if path.suffix in (".xlsx", ".ods"):
        frame = pd.read_excel(path, index_col=index, **options)
    else:
        options.setdefault("sep", "\t" if ".tsv" in path.name else ",")
        frame = pd.read_csv(path, index_col=index, **options)
    numbers = frame.dropna(axis=1, how="all").select_dtypes("number")
    if options["header"] is None:
        numbers.columns = [f"x{j + 1}" for j in numbers.columns]
    cells = [[None if np.isnan(x) else x for x in row] for row in numbers.to_numpy(dtype=float).tolist()]
    return {"names": [str(name).strip() for name in numbers.columns], "cells": cells}


def by_csv(frame, number=str, **dialect):
    """Python's csv module."""
    out = io.StringIO()
    writer = csv.writer(out, **dialect)
    writer.writerow(frame.columns)
    for row in frame.itertuples(index=False):
        cells = [None if isinstance(x, float) and np.isnan(x) else x for x in row]
        writer.writerow([number(x) if isinstance(x, float) else x for x in cells])
    return out.getvalue()


def by_r(frame, sep=" ", dec=".", rows=True, corner=False):
    """What R's write.table documents: text and names in quotes, NA, names of rows, the corner left out or empty."""
    quote = lambda text: '"' + str(text).replace('"', '\\"') + '"'
    names = [quote(name) for name in frame.columns]
    lines = [sep.join(([quote("")] if corner else []) + names)]
    for i, row in enumerate(frame.itertuples(index=False), 1):
        cells = [quote(i)] if rows else []
        for x in row:
            missing = isinstance(x, float) and np.isnan(x)
            cells.append("NA" if missing else quote(x) if isinstance(x, str) else f"{x:.15g}".replace(".", dec))
        lines.append(sep.join(cells))
    return "\n".join(lines) + "\n"


def comma(x):
    return str(x).replace(".", ",")


# Python's csv.
table("csv-excel.csv", by_csv(FRAME))
table("csv-excel-tab.tsv", by_csv(HOLES, dialect="excel-tab"))
table("csv-unix.csv", by_csv(HOLES, dialect="unix"))
table("csv-semicolon.csv", by_csv(HOLES, delimiter=";"), delimiter=";")
table("csv-semicolon-comma.csv", by_csv(HOLES, comma, delimiter=";"), delimiter=";", decimal=",")
table("csv-tab-in-csv.csv", by_csv(FRAME, delimiter="\t"), delimiter="\t")
table("csv-tab-comma.tsv", by_csv(HOLES, comma, delimiter="\t"), decimal=",")
table("csv-pipe.csv", by_csv(FRAME, delimiter="|"), delimiter="|")
table("csv-quoted-numbers.csv", by_csv(FRAME, quoting=csv.QUOTE_ALL))
quoted = FRAME.assign(site=['a "b"', "c;d", "e,f", "g\nh", "i|j", "k\tl", "", " m "])
table("csv-odd-text.csv", by_csv(quoted))
table("csv-odd-text-semicolon.csv", by_csv(quoted, comma, delimiter=";"), delimiter=";", decimal=",")
table("csv-crlf-no-end.csv", by_csv(FRAME).rstrip("\r\n"))

# pandas.
table("pandas-index.csv", FRAME.to_csv(), index=0)
table("pandas-no-index.csv", HOLES.to_csv(index=False))
table("pandas-index-subset.csv", FRAME[FRAME.index % 2 == 1].to_csv(), index=0)
table("pandas-text-index.csv", HOLES.set_index("site").to_csv(), index=0)
table("pandas-semicolon-comma.csv", HOLES.to_csv(sep=";", decimal=",", index=False), delimiter=";", decimal=",")
table("pandas-na.csv", HOLES.to_csv(index=False, na_rep="N/A"))
table("pandas-na-number.csv", HOLES.to_csv(index=False, na_rep="-999"), na=["-999"])
table("pandas-na-mark.csv", HOLES.to_csv(index=False, na_rep="?"), na=["?"])
table("pandas-na-dot.csv", HOLES.to_csv(index=False, na_rep="."), na=["."])
table("pandas-latin.csv", LATIN.to_csv(index=False), encoding="latin-1")
table("pandas-utf-8-bom.csv", "\ufeff" + LATIN.to_csv(index=False))
table("pandas-utf-16.csv", LATIN.to_csv(index=False), encoding="utf-16")
table("pandas-utf-16-tab.csv", LATIN.to_csv(index=False, sep="\t"), encoding="utf-16", delimiter="\t")
table("pandas-exponents.csv", FRAME.assign(height=FRAME.height * 1e-12).to_csv(index=False, float_format="%.17e"))
table("pandas-booleans.csv", FRAME.assign(good=FRAME.height > 170).to_csv(index=False))
days = pd.date_range("2024-02-27", periods=8)
table("pandas-dates.csv", FRAME.assign(day=days, hour=days.strftime("%H:%M")).to_csv(index=False))
table("pandas-no-header.csv", FRAME.drop(columns="site").to_csv(index=False, header=False), header=False)
waves = pd.DataFrame(np.round(rng.random((6, 5)), 4), columns=[400, 410, 420, 430, 440])
table("pandas-wavelengths.csv", waves.to_csv(index=False))

# R.
table("r-write-table.csv", by_r(HOLES), delimiter=" ")
table("r-write-table-tab.tsv", by_r(HOLES, "\t"))
table("r-write-table-no-rows.tsv", by_r(HOLES, "\t", rows=False))
table("r-write-table-comma.csv", by_r(HOLES, ","))
table("r-write-csv.csv", by_r(HOLES, ",", corner=True), index=0)
table("r-write-csv2.csv", by_r(HOLES, ";", ",", corner=True), index=0, delimiter=";", decimal=",")
table("r-write-csv2-no-rows.csv", by_r(HOLES, ";", ",", rows=False), delimiter=";", decimal=",")
table("r-write-table-decimal.csv", by_r(FRAME, "\t", ","), delimiter="\t", decimal=",")


# Spreadsheets.
def workbook(name, sheets, change=lambda book: None):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    change(book)
    book.save(HERE / name)


def rows_of(frame):
    plain = frame.astype(object).where(frame.notna(), None)
    return [list(frame.columns), *plain.values.tolist()]


workbook("sheet.xlsx", {"Data": rows_of(HOLES)})
table("sheet.xlsx", None)
HOLES.to_excel(HERE / "sheet-pandas.xlsx")
table("sheet-pandas.xlsx", None, index=0)
workbook("sheet-second.xlsx", {"Notes": [["read", "me"], ["please", "now"]], "Data": rows_of(FRAME)})
table("sheet-second.xlsx", None, sheet="Data")
workbook("sheet-first.xlsx", {"Data": rows_of(FRAME), "Notes": [["read", "me"], ["please", "now"]]})
table("sheet-first.xlsx", None)
typed = FRAME.assign(day=days.to_pydatetime(), good=FRAME.height > 170)
workbook("sheet-types.xlsx", {"Data": rows_of(typed)})
table("sheet-types.xlsx", None)
workbook("sheet-words.xlsx", {"Data": rows_of(HOLES.astype(object).where(HOLES.notna(), "N/A"))})
table("sheet-words.xlsx", None)
workbook("sheet-marks.xlsx", {"Data": rows_of(HOLES.astype(object).where(HOLES.notna(), "?"))})
table("sheet-marks.xlsx", None, na=["?"])
workbook("sheet-offset.xlsx", {"Data": [[None] * 5, *([None, *row] for row in rows_of(FRAME))]})
table("sheet-offset.xlsx", None, skip=1)
FRAME.to_excel(HERE / "sheet.ods", index=False, engine="odf")
table("sheet.ods", None)
workbook("sheet-merged.xlsx", {"Data": rows_of(FRAME)}, lambda book: book["Data"].merge_cells("B2:B3"))
table("sheet-merged.xlsx", None, refused=True)
workbook("sheet-formulas.xlsx", {"Data": [["a", "b"], [1, "=A2+1"], [2, "=A3+1"]]})
table("sheet-formulas.xlsx", None, refused=True)
with open(HERE / "sheet.xlsx", "rb") as plain, open(HERE / "sheet-password.xlsx", "wb") as secret:
    msoffcrypto.format.ooxml.OOXMLFile(plain).encrypt("secret", secret)
table("sheet-password.xlsx", None, refused=True)

stray = FRAME.astype(object)
stray.loc[3, "weight"] = "?"
workbook("sheet-stray.xlsx", {"Data": [[None] * 4, *rows_of(stray)]})
table("sheet-stray.xlsx", None, refused=True, skip=1)

# By hand.
table("hand-sep-line.csv", "sep=;\na;b\n1,5;2\n2,25;3\n", skip=1, delimiter=";", decimal=",")
table("hand-spaces.csv", "a, b , c\n 1, 2.5 ,x\n3 ,4, y\n")
table("hand-blank-lines.csv", "\n\na,b\n\n1,2\n\n3,4\n\n")
table("hand-plus.csv", "a,b\n+1,-.5\n+2.5e3,5.\n")
table("hand-german.csv", "Größe;Gewicht\n1,85;80,5\n1,7;65\n", delimiter=";", decimal=",", encoding="cp1252")
table("hand-thousands.csv", 'a;b\n"1,234";2.5\n"5,678";3.5\n', delimiter=";")
table("hand-thousands-decimal.csv", "a;b\n1,234;2,500\n5,678;3,250\n", delimiter=";", decimal=",")
table("hand-two-readings.csv", "Weight, kg;Height, cm\n80,5;180,25\n65,1;170,75\n", delimiter=";", decimal=",")
table("hand-decimal-comma-in-one.csv", "a\n1,5\n2,5\n", refused=True)
table("hand-first-row-misses.csv", "1.5,,2.5\n4.5,5.5,6.5\n7.5,8.5,9.5\n", header=False)
table("hand-years.csv", "country,1990,1991,1992\nA,3.5,2.1,9.9\nB,1.5,7.25,1.0\nC,2.5,2.5,2.5\n")
table("hand-ragged.csv", "a;b;c\n1;2;3\n4;5\n", refused=True)
table("hand-stray.csv", "a,b\n1,2\n3,x\n5,6\n7,8\n", refused=True)
table("hand-at.csv", "a@b\n1.5@2\n3@4\n", delimiter="@")
table("hand-mixed-decimals.csv", "a;b\n1,5;2\n2.5;3\n3.5;4\n", refused=True)

(HERE / "expected.json").write_text(
    json.dumps({"made with": f"pandas {pd.__version__}", "tables": expected}, indent=1, ensure_ascii=False) + "\n"
)
print(len(expected), "tables")
