"""The code blocks of a page of Markdown, and how they are run.

- ``python`` runs; all blocks of a page share their names. A block ``output`` right after it is what it prints.
- ``console``: each line after ``$`` runs in bash, in a folder of the page's own, with ``covary`` on the path. The lines below
  it are what it prints, and without any it only has to succeed.
- ``rust`` is compiled where rustdoc reads the page: crates/core/src/lib.rs says of which.
- Other blocks are no code, unless they are not in a language that is known here, which is an error.

Printed numbers have to agree to six digits, ``...`` stands for anything, and seconds are not compared. Comments in the source
say the rest:

- ``<!-- not run: why -->`` before a block that cannot run.
- ``<!-- run first: … -->`` before one that needs something which readers have and the page does not show: Python code.
- ``<!-- data: a.csv b.csv -->``: public data sets that the commands of the page read, from scikit-learn or from the folder that
  COVARY_DATA names; without them these commands are skipped.
- ``<!-- picture: a.png -->``: what was drawn last is the picture pictures/a.png, which ``make pictures`` keeps.
"""

import contextlib
import doctest
import io
import math
import os
import pathlib
import re
import shutil
import subprocess
from typing import NamedTuple

from sklearn import datasets

ROOT = pathlib.Path(__file__).parents[2]
#: Blocks that are no code.
PLAIN = {"text", "output", "json", "bibtex"}
#: Data sets that scikit-learn brings, as the files that people have of them.
SHIPPED = {f"{name}.csv" for name in ("breast_cancer", "diabetes", "digits", "iris", "wine")}

_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>not run|run first|data|picture): ?(?P<told>.*?) ?-->\n+)|"
    r"^```(?P<language>[^\n`]*)\n(?P<code>.*?)^```$",
    re.M | re.S,
)
_NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_SECONDS = re.compile(r"^( *seconds +)\S+$", re.M)


class Block(NamedTuple):
    """A code block, or a mark of the source, and the line it begins in."""

    line: int
    language: str
    code: str


def pages():
    """Every page of the repository that people read."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("bench/*.md"), *ROOT.glob("docs/**/*.md")]
    return sorted(str(page.relative_to(ROOT)) for page in found)


def blocks(page):
    """Blocks of a page and marks of its source, in their order; directives of the site are none."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found["mark"]:
            yield Block(line, found["mark"], found["told"])
        elif not found["language"].startswith("{"):
            yield Block(line, found["language"], found["code"])


def data_folder():
    return pathlib.Path(os.environ.get("COVARY_DATA", ROOT.parent / "shared" / "data"))


def _ship(name, folder):
    """Writes a data set of scikit-learn as a table with the column `target` last."""
    frame = getattr(datasets, f"load_{name.removesuffix('.csv')}")(as_frame=True).frame
    frame.columns = frame.columns.str.replace(" ", "_")
    frame.to_csv(folder / name, index=False)


def agree(expected, printed):
    """Whether what was printed is what the page shows."""
    pattern, numbers = "", []
    for part in re.split(rf"({_NUMBER}|\.\.\.)", _plain(expected)):
        if part == "...":
            pattern += ".*?"
        elif re.fullmatch(_NUMBER, part):
            numbers.append(float(part))
            pattern += f"({_NUMBER})"
        else:
            pattern += re.escape(part)
    found = re.fullmatch(pattern, _plain(printed), re.S)
    return found is not None and all(
        math.isclose(float(told), number, rel_tol=1e-6, abs_tol=1e-12) for told, number in zip(found.groups(), numbers)
    )


def _plain(text):
    """Text whose seconds are hidden and whose lines and columns have no width."""
    return " ".join(_SECONDS.sub(r"\1", text).split())


class Page:
    """Runs the blocks of one page in a folder, which is the current one, one after the other."""

    def __init__(self, page, folder, command=None, **given):
        self.page = page
        self.folder = folder
        self.command = command
        self.names = {"__name__": "__main__", **given}
        self.missing = [] if command is not None and command.exists() else ["the command"]

    def run(self):
        """Runs all blocks; what is skipped for want of data is in `missing`."""
        found = list(blocks(self.page))
        for place, block in enumerate(found):
            after = found[place + 1] if place + 1 < len(found) else None
            before = found[place - 1] if place else None
            if before is None or before.language != "not run":
                self._run(block, after.code if after is not None and after.language == "output" else None)

    def _run(self, block, output):
        match block.language:
            case "python" | "run first":
                self._python(block, output)
            case "console":
                self._console(block)
            case "data":
                self._bring(block.code.split())
            case "picture":
                self._draw(block.code)
            case "not run":
                assert block.code, f"{self._place(block)}: say why it is not run"
            case "rust":
                assert self.page == "README.md", f"{self._place(block)}: nothing compiles the Rust of this page"
            case language:
                assert language in PLAIN, f"{self._place(block)}: is {language!r} code? If it cannot run, say why"

    def _place(self, block):
        return f"{self.page}:{block.line}"

    def _python(self, block, output):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if ">>>" in block.code:
                self._session(block)
            else:
                # Empty lines in front, so that a traceback names the line of the page.
                exec(compile("\n" * block.line + block.code, ROOT / self.page, "exec"), self.names)
        if output is not None:
            self._compare(block, output, printed.getvalue())

    def _session(self, block):
        test = doctest.DocTestParser().get_doctest(block.code, self.names, self.page, self.page, block.line)
        test.globs = self.names
        doctest.DebugRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False)

    def _console(self, block):
        assert block.code.startswith("$ "), f"{self._place(block)}: a command stands after $"
        if self.missing:
            return
        for part in re.split(r"^\$ ", block.code, flags=re.M)[1:]:
            lines = part.splitlines(keepends=True)
            last = next(i for i, line in enumerate(lines) if not line.endswith("\\\n"))
            self._command(block, "".join(lines[: last + 1]), "".join(lines[last + 1 :]))

    def _command(self, block, line, output):
        path = f"{self.command.parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        # A command that fails is shown with the sentence that it says.
        assert done.returncode == 0 or output, f"{self._place(block)}: {line}{done.stdout}"
        if output:
            self._compare(block, output, done.stdout)

    def _compare(self, block, expected, printed):
        assert agree(expected, printed), f"{self._place(block)} shows\n{expected}\nbut it prints\n{printed}"

    def _bring(self, names):
        for name in names:
            if name in SHIPPED:
                _ship(name, self.folder)
            elif (data_folder() / name).exists():
                shutil.copy(data_folder() / name, self.folder)
            else:
                self.missing.append(name)

    def _draw(self, name):
        """Keeps what the page has drawn under the name of the picture that it shows."""
        from matplotlib import pyplot

        shown = (ROOT / self.page).read_text(encoding="utf-8")
        assert f"pictures/{name})" in shown, f"{self.page} draws {name} and does not show it"
        assert (ROOT / "docs/pictures" / name).exists(), f"make pictures, so that {self.page} has its {name}"
        pyplot.gcf().savefig(self.folder / name)
        pyplot.close("all")
