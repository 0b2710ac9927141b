"""The directive `command-help`: what `covary --help` says of each of its commands, as sections of a page.

It asks the command that the Python package carries, so that the page cannot say anything else than the program.
"""

import re
import subprocess
import sys
from functools import cache

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

# clap writes headings at the margin, flags and arguments 2 (or, without a letter, 6) characters in. Explanations
# follow on lines of their own or, where all are short, after two spaces.
_HEADING = re.compile(r"([A-Z][^:\n]*):\n")
_EXPLAINED = re.compile(r"(?: {2}| {6})([-<[](?:\S| (?! ))*)(?:  +(\S.*))?")
_VALUE = re.compile(r"- (\S+?):\s+(.*)")
_SELF_EVIDENT = {"-h, --help", "-V, --version"}


@cache
def help_of(*command):
    """The long help of a command; of none, that of covary itself."""
    asked = [sys.executable, "-m", "covary", *command, "--help"]
    done = subprocess.run(asked, capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(asked)}: {done.stderr}")
    return done.stdout


def commands():
    """Names of the commands, in the order of the help."""
    _, _, rest = help_of().partition("\nCommands:\n")
    return [name for name in re.findall(r"^  (\S+)  ", rest.partition("\n\n")[0], re.M) if name != "help"]


def parts(text):
    """The blocks of a help: paragraphs, and headings with the indented lines below them."""
    for block in re.split(r"\n\n(?=\S)", text.strip("\n")):
        heading = _HEADING.match(block + "\n")
        if heading and block[heading.end() :].startswith("  "):
            yield heading[1], block[heading.end() :]
        else:
            yield None, block


def _paragraphs(text):
    """Paragraphs whose lines were broken to fit a terminal; values to choose from as a list."""
    for block in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in block.splitlines()]
        if lines[0] == "Possible values:":
            yield _values(lines[1:])
        else:
            yield nodes.paragraph(text=" ".join(lines))


def _values(lines):
    found = []
    for line in lines:
        value = _VALUE.match(line)
        if value:
            found.append([value[1], value[2]])
        else:
            found[-1][1] += f" {line}"
    listed = nodes.bullet_list()
    for name, meaning in found:
        listed += nodes.list_item("", nodes.paragraph("", "", nodes.literal(text=name), nodes.Text(f": {meaning}")))
    return listed


def _explained(text):
    """Flags and arguments with their explanations, as a list of definitions."""
    entries = []
    for line in text.splitlines():
        entry = _EXPLAINED.fullmatch(line)
        if entry:
            entries.append([entry[1].strip(), entry[2] or ""])
        else:
            entries[-1][1] += f"\n{line}"
    listed = nodes.definition_list()
    for term, meaning in entries:
        if term not in _SELF_EVIDENT:
            body = nodes.definition("", *_paragraphs(meaning.strip("\n")))
            listed += nodes.definition_list_item("", nodes.term("", "", nodes.literal(text=term)), body)
    return listed


def _code(text, language):
    shown = nodes.literal_block(text, text)
    shown["language"] = language
    return shown


def _drawn(heading, text):
    """One block of a help as nodes."""
    if heading is None:
        usage = text.removeprefix("Usage: ")
        return [_code(usage, "text")] if usage != text else list(_paragraphs(text))
    if re.match(r" +covary ", text):
        lines = [f"$ {line.strip()}" for line in text.splitlines()]
        return [nodes.rubric(text=heading), _code("\n".join(lines), "console")]
    if _EXPLAINED.match(text):
        listed = _explained(text)
        return [nodes.rubric(text=heading), listed] if listed.children else []
    return [nodes.rubric(text=heading), _code("\n".join(line[2:] for line in text.splitlines()), "text")]


class CommandHelp(SphinxDirective):
    """The help of covary, then a section for each command."""

    def run(self):
        drawn = self._help()
        for name in commands():
            section = nodes.section(ids=[f"covary-{name}"], names=[f"covary {name}"])
            section += nodes.title(text=f"covary {name}")
            section += self._help(name)
            drawn.append(section)
        return drawn

    def _help(self, *command):
        return [node for part in parts(help_of(*command)) for node in _drawn(*part)]


def setup(app):
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
