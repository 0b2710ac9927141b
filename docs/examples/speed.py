"""The bars of README.md: how many times faster covary is than the fastest peer that is right, light and dark.

The numbers are those of `make compare`, saved in bench/speed.json with their date, versions and machine:

    python docs/examples/speed.py [FOLDER]
"""

import json
import math
import pathlib
import sys
from xml.sax.saxutils import escape

NUMBERS = pathlib.Path(__file__).parents[2] / "bench" / "speed.json"
#: Cases that are shown, and what they are called.
CASES = {
    "tall": "PCA, {}",
    "streaming": "PCA in batches",
    "wide": "PCA, {}",
    "holes": "missing values, {}",
    "bayes": "Bayesian PCA, {}",
    "factor": "factor analysis, {}",
    "ica": "independent components",
    "mixture, full": "mixtures of Gaussians",
    "nyström": "kernel PCA, 500 landmarks",
}
THEMES = {
    "light": {"ink": "#1d2127", "soft": "#5b626d", "line": "#c9ced6", "bar": "#0072b2"},
    "dark": {"ink": "#e7e9ed", "soft": "#a2a9b5", "line": "#434955", "bar": "#56b4e9"},
}
FONT = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
WIDTH, LEFT, RIGHT, ROW, TOP = 860, 250, 240, 30, 44


def size(what):
    """The shape that a case names: “fit 200000 × 300, q 10” is 200 000 × 300."""
    words = what.split()
    at = words.index("×")
    rows, features = (word.strip(",") for word in (words[at - 1], words[at + 1]))
    return f"{int(rows):,}".replace(",", "\u202f") + f" × {int(features):,}".replace(",", "\u202f")


def bars(cases):
    """Name, ratio, seconds and peer of each case: the fastest of ours beside the fastest peer that is right."""
    known = {case["case"]: case for case in cases}
    for name, title in CASES.items():
        case = known.get(name)
        right = [result for result in case["results"] if result["right"]] if case else []
        sides = [[result for result in right if ("covary" in result["method"]) == ours] for ours in (True, False)]
        if not all(sides):
            continue
        ours, peer = (min(side, key=lambda result: result["seconds"]) for side in sides)
        yield title.format(size(case["what"])) if "{}" in title else title, peer["seconds"] / ours["seconds"], ours["seconds"], peer


def seconds(x):
    return f"{x:.0f} s" if x >= 10 else f"{x:.2g} s"


def picture(found, about, theme):
    """The bars as SVG, on a scale of logarithms from 1."""
    colours, wide = THEMES[theme], WIDTH - LEFT - RIGHT
    most = math.log10(max(ratio for _, ratio, _, _ in found)) * 1.02
    bottom = TOP + ROW * len(found)
    text = lambda x, y, words, **given: (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{given.get("fill", colours["ink"])}" font-size="{given.get("size", 13)}" '
        f'text-anchor="{given.get("anchor", "start")}" font-weight="{given.get("weight", 400)}">{escape(words)}</text>'
    )
    parts = [text(0, 18, "Times faster than the fastest peer that is right", size=15, weight=600)]
    for power in range(int(most) + 1):
        x = LEFT + wide * power / most
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{TOP}" stroke="{colours["line"]}"/>')
        parts.append(text(x, TOP - 12, f"{10**power}×", fill=colours["soft"], size=11, anchor="middle"))
    for k, (name, ratio, ours, peer) in enumerate(found):
        y, long = TOP + ROW * k, max(2.0, wide * math.log10(max(ratio, 1.0)) / most)
        parts.append(text(LEFT - 12, y + 18, name, anchor="end"))
        parts.append(f'<rect x="{LEFT}" y="{y + 4}" width="{long:.1f}" height="{ROW - 10}" rx="2" fill="{colours["bar"]}"/>')
        parts.append(text(LEFT + long + 8, y + 18, f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×", weight=600))
        told = f'{seconds(ours)} beside {seconds(peer["seconds"])}: {peer["method"]}'
        parts.append(text(LEFT + long + 8 + (44 if ratio >= 10 else 40), y + 18, told, fill=colours["soft"], size=11))
    versions = about["versions"]
    peers = ", ".join(f"{name} {versions[name]}" for name in ("scikit-learn", "vbpca-py", "python-picard") if versions.get(name))
    parts.append(text(0, bottom + 22, f'make compare, {about["date"]}, {about["machine"]}; {peers}', fill=colours["soft"], size=11))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom + 32}" viewBox="0 0 {WIDTH} {bottom + 32}" '
        f'font-family="{FONT}" role="img"><title>Speed of covary beside other packages</title>{"".join(parts)}</svg>\n'
    )


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures")
    about = json.loads(NUMBERS.read_text(encoding="utf-8"))
    found = list(bars(about["cases"]))
    for theme in THEMES:
        (folder / f"speed-{theme}.svg").write_text(picture(found, about, theme), encoding="utf-8")
    print(f"the bars of speed in {folder}")


if __name__ == "__main__":
    main()
