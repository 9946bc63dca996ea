"""The directive ``command-reference``: every command with its options, from the program itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from sparsecast.cli.main import build


class CommandReference(SphinxDirective):
    """A section for each command, in the order of ``sparsecast --help``."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        program = typer.main.get_command(build())
        sections = "\n\n".join(_sections(program, "sparsecast", None))
        return self.parse_text_to_nodes(sections, allow_section_headings=True)


def _sections(command: Any, name: str, parent: Any) -> Iterator[str]:
    """Yield the text of a command, then of the commands in it."""
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    yield _section(command, context)
    for subcommand in getattr(command, "commands", {}).values():
        yield from _sections(subcommand, subcommand.name, context)


def _section(command: Any, context: Any) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    rows = [record for parameter in command.params if (record := parameter.get_help_record(context))]
    parts = [f"## {context.command_path}", f"```text\n{usage}\n```", _sentences(command.help)]
    if rows:
        cells = [f"| {_code(names)} | {_sentences(what)} |" for names, what in rows]
        parts.append("\n".join(["| argument or option | what it does |", "|---|---|", *cells]))
    return "\n\n".join(parts)


def _sentences(text: str | None) -> str:
    """Return a help text as one paragraph in which nothing is markup."""
    words = " ".join((text or "").split())
    return "".join(f"\\{sign}" if sign in r"\`*_{}[]<>#|~$" else sign for sign in words)


def _code(names: str) -> str:
    return "`" + names.strip().replace("|", r"\|") + "`"


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True}
