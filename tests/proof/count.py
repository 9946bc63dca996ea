"""Print the table of the proofs: files and lines of each, and files of src that it edits.

Lines are those of code: without blank lines, comments and docstrings.
"""

from __future__ import annotations

import io
import tokenize
from pathlib import Path

HERE = Path(__file__).parent
PROOFS = {
    "(a) format with its kernel": [HERE / "toys" / "short_csr"],
    "other library": [HERE / "toys" / "counted"],
    "(b) model with a feature group and benchmark matrices": [HERE / "toys" / "columns"],
    "(c) model of energy": [HERE / "toys" / "joules"],
    "(d) device that replays Records": [HERE / "toys" / "replayed"],
    "(p) paper with a model, a suite, a command and a function": [HERE / "toys" / "paper"],
    "(e) operator over two parts": [HERE / "test_operator_over_parts.py"],
    "(f) application": [HERE / "toys" / "jacobi"],
    "distributed algorithm": [HERE / "toys" / "bcast_1d"],
    "meter": [HERE / "toys" / "watts"],
    "second GPU": [HERE / "toys" / "simulated_gpu"],
}
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def code_lines(path: Path) -> int:
    """Return the lines of a file that hold code."""
    text = path.read_text()
    if path.suffix != ".py":
        return sum(bool(line.strip()) for line in text.splitlines())
    lines: set[int] = set()
    starts_statement = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = token.type == tokenize.STRING and starts_statement
        if token.type not in (*_NO_CODE, tokenize.ENDMARKER) and not is_docstring:
            lines.update(range(token.start[0], token.end[0] + 1))
        starts_statement = token.type in _NO_CODE
    return len(lines)


if __name__ == "__main__":
    print("| change | files new | files edited in src | lines | lines of code |\n|---|---|---|---|---|")
    for name, places in PROOFS.items():
        files = [f for p in places for f in ([p] if p.is_file() else sorted(p.rglob("*.*")))]
        written = sum(len(file.read_text().splitlines()) for file in files)
        print(f"| {name} | {len(files)} | 0 | {written} | {sum(map(code_lines, files))} |")
