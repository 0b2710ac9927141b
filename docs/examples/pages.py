"""The pictures of the guides and of the pages about concepts: what the code blocks before them draw.

Run from the folder of the project, with the package and matplotlib installed: python docs/examples/pages.py [PAGE…]
"""

import os
import pathlib
import sys
import tempfile

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from plots import save

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python/tests"))

import pages
from conftest import COMMAND


class Drawn(pages.Page):
    """A page whose pictures are kept."""

    def _draw(self, name):
        save(pyplot.gcf(), ROOT / "docs/pictures" / name)
        pyplot.close("all")


def main():
    wanted = sys.argv[1:] or [
        page for page in pages.pages() if any(block.language == "picture" for block in pages.blocks(page))
    ]
    for page in wanted:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            Drawn(page, pathlib.Path(folder), COMMAND).run()
            os.chdir(ROOT)
        print(f"pictures of {page}")


if __name__ == "__main__":
    main()
