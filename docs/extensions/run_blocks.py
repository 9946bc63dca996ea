"""Run every code block of pages in Markdown: ``python docs/extensions/run_blocks.py [--write] PAGE...``.

Each page has a folder of its own, in which its blocks run one after the other: ``python`` in one namespace,
``console`` line by line after ``$``, ``json`` and ``toml`` are parsed, ``text`` is no code. What is
printed is compared with what the page shows, if it shows anything: ``...`` stands for any text. Numbers may
differ by a hundredth, since libraries round differently. ``--write`` puts what was printed into the page.

A comment before a block says what else is to be known of it::

    <!-- file: power.json -->              the block is the text of this file
    <!-- not run: takes five minutes -->   not run; its commands and options must exist, Python must compile
"""

from __future__ import annotations

import contextlib
import doctest
import gzip
import io
import itertools
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "data" / "recorded-profile.parquet"

#: By how much a number may differ from the one on the page.
TOLERANCE = 0.01
TIMEOUT_S = 120

_DIRECTIVE = re.compile(r"<!--\s*(file|not run):\s*(\S.*?)\s*-->")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
#: Lines of tables, and the spaces that fill a cell, are as long as the numbers between them.
_FILLING = re.compile(r"[━─ ]{2,}")


class BlockError(Exception):
    """A block does not do what the page says."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with what the comment before it says."""

    language: str
    text: str
    line: int
    file: str | None = None
    not_run: str | None = None


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page that are code."""
    directives: dict[str, str] = {}
    for token in MarkdownIt("commonmark").parse(page):
        line = (token.map or (0, 0))[0] + 1
        if token.type == "html_block":
            directives = dict(_DIRECTIVE.findall(token.content))
        elif token.type == "code_block":
            raise BlockError(f"line {line}: a block by indentation: expected a fence with its language")
        elif token.type == "fence":
            if not token.info.startswith("{"):  # a directive of the site
                yield Block(
                    token.info, token.content, line, directives.get("file"), directives.get("not run")
                )
            directives = {}


def run_page(path: Path, writes: bool) -> str:
    """Run all blocks of a page, and return how many those were; raise BlockError at the first that fails."""
    from scipy.io import mmwrite

    import sparsecast as sc

    page = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="sparsecast-page-") as name:
        folder = Path(name)
        # Files that all pages may name.
        shutil.copy(RECORDED, folder / "recorded.parquet")
        with gzip.open(folder / "matrix.mtx.gz", "wb") as file:
            mmwrite(file, sc.gallery("circuit", n=3000).tocoo())
        os.environ["SPARSECAST_HOME"] = str(folder / "home")
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        os.chdir(folder)
        namespace: dict[str, Any] = {"__name__": "__main__"}
        counts = {"run": 0, "parsed": 0}
        for block in blocks(page):
            try:
                shown = _done(block, namespace)
            except Exception as error:
                last = "".join(traceback.format_exception_only(error)).strip()
                raise BlockError(f"{path}:{block.line}: {last}") from error
            if writes and shown != block.text:
                page = page.replace(block.text, shown, 1)
            counts["parsed" if block.not_run else "run"] += 1
        os.chdir(ROOT)
    if writes:
        path.write_text(page, encoding="utf-8")
    return f"{path.name}: {counts['run']} blocks run, {counts['parsed']} parsed only"


def _done(block: Block, namespace: dict[str, Any]) -> str:
    """Do what a block asks for, and return its text with what was printed."""
    if block.file:
        Path(block.file).write_text(block.text, encoding="utf-8")
    if block.language in _LANGUAGES:
        return _LANGUAGES[block.language](block, namespace) or block.text
    raise BlockError(f"language {block.language!r}: expected one of {', '.join(_LANGUAGES)}")


def _python(block: Block, namespace: dict[str, Any]) -> None:
    code = compile(block.text, "block", "exec")
    if not block.not_run:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, namespace)


def _session(block: Block, namespace: dict[str, Any]) -> None:
    """Run an interactive session, with its results compared."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    test = doctest.DocTestParser().get_doctest(block.text, namespace, "block", None, 0)
    if block.not_run:
        for example in test.examples:
            compile(example.source, "block", "single")
        return
    failures: list[str] = []
    doctest.DocTestRunner(optionflags=flags).run(test, out=failures.append, clear_globs=False)
    if failures:
        raise BlockError("".join(failures))
    namespace.update(test.globs)


def _console(block: Block, namespace: dict[str, Any]) -> str:
    """Run the commands of a block, and compare what each prints with the lines below it."""
    shown = []
    for command, want in _commands(block.text):
        if block.not_run:
            refuse_unknown(command)
            shown.append(f"$ {command}\n{want}")
            continue
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            raise BlockError(f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        got = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
        if want and not alike(want, got) and "--write" not in sys.argv:
            raise BlockError(f"{command}: expected\n{want}but it printed\n{got}")
        shown.append(f"$ {command}\n{got if want and not alike(want, got) else want}")
    return "".join(shown)


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a block with the output that the page shows."""
    first, *rest = re.split(r"^\$ ", text, flags=re.MULTILINE)
    if first.strip() or not rest:
        raise BlockError(f"{text.splitlines()[0]!r}: expected a command after '$ '")
    for part in rest:
        lines = part.splitlines(keepends=True)
        count = 1 + sum(1 for _ in itertools.takewhile(lambda line: line.endswith("\\\n"), lines))
        yield "".join(lines[:count]).strip(), "".join(lines[count:])


def refuse_unknown(command: str) -> None:
    """Raise if a command of Sparsecast has arguments or options that do not exist."""
    from sparsecast.cli.main import build

    for part in re.split(r"&&|[;|>]\s", command.replace("\\\n", " ")):
        words = shlex.split(part, comments=True)
        if "sparsecast" not in words or "--help" in words:
            continue
        # The command line reads its arguments, and does nothing with them.
        words = words[words.index("sparsecast") + 1 :]
        name, parser, context = "sparsecast", typer.main.get_command(build()), None
        while words:
            context = parser.make_context(name, list(words), parent=context)
            if not hasattr(parser, "resolve_command"):
                break
            name, parser, words = parser.resolve_command(context, words)


def alike(want: str, got: str) -> bool:
    """Say whether a text is the expected one, but for spaces, lines of tables and last digits."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if doctest.OutputChecker().check_output(want, got, flags):
        return True
    wanted, printed = (_NUMBER.findall(text) for text in (want, got))
    if "..." in want or len(wanted) != len(printed):
        return False
    words = [_NUMBER.sub("#", _FILLING.sub(" ", text)).split() for text in (want, got)]
    return words[0] == words[1] and all(
        math.isclose(_value(one), _value(other), rel_tol=TOLERANCE)
        for one, other in zip(wanted, printed, strict=True)
    )


def _value(number: str) -> float:
    return float(number.replace(",", ""))


_LANGUAGES: dict[str, Any] = {
    "python": _python,
    "pycon": _session,
    "console": _console,
    "json": lambda block, namespace: json.loads(block.text) and None,
    "toml": lambda block, namespace: tomllib.loads(block.text) and None,
    "text": lambda block, namespace: None,  # no code
}


def _outcome(path: Path, writes: bool) -> tuple[bool, str]:
    try:
        return True, run_page(path, writes)
    except BlockError as error:
        return False, str(error)


def main() -> int:
    """Run the pages that are named, two at once, and return the exit status."""
    writes = "--write" in sys.argv
    pages = [Path(name).resolve() for name in sys.argv[1:] if name != "--write"]
    if not pages:
        print(__doc__, file=sys.stderr)
        return 2
    with ProcessPoolExecutor(max_workers=2) as pool:
        outcomes = list(pool.map(_outcome, pages, itertools.repeat(writes)))
    for _, report in outcomes:
        print(report)
    return 0 if all(good for good, _ in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
