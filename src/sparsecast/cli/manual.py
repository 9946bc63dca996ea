"""The manual page sparsecast(1), made of the help of the commands themselves."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from sparsecast.system.version import VERSION

#: Variables, files, statuses and examples, each with what it means.
_ENVIRONMENT = {
    "SPARSECAST_HOME": "Folder for profiles, measurements and models, instead of the platform's.",
    "NUMBA_CACHE_DIR": "Folder for compiled kernels, instead of folders beside the modules.",
    "NUMBA_NUM_THREADS": "The largest number of threads that a product may take.",
}
_FILES = {
    "profiles/MACHINE.parquet": "What was measured of a machine.",
    "measurements/MACHINE.jsonl": "Kept results; of ranks in MACHINE.distributed.jsonl.",
    "blocks/MACHINE/*.npz": "What label measured.",
    "models/MACHINE/*.json": "Fitted models.",
    "cache/": "What draws pages; it may be deleted.",
}
_STATUS = {
    "0": "Done.",
    "1": "A fault of Sparsecast.",
    "2": "The input was wrong; one line on standard error says what was expected, and the remedy.",
    "130": "Stopped from the keyboard.",
}
EXAMPLES = {
    "sparsecast predict 'gallery:poisson3d?n=60'": "Forecast one product on this machine.",
    "sparsecast plan matrix.mtx.gz --iterations 1000 --check": "Find the best way, and measure it.",
    "sparsecast predict matrix.mtx.gz --profile nvidia-v100": "Forecast for a machine that others measured.",
    "sparsecast compare matrix.mtx.gz --machines nvidia-v100,nvidia-a100": "Compare two such machines.",
    "sparsecast manual > sparsecast.1": "Keep this page; man ./sparsecast.1 shows it.",
}
_ESCAPED = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", '"': r"\(dq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
)


def manual(context: Any) -> str:
    """Return the page in roff.

    Parameters
    ----------
    context : typer.Context
        Of the whole application, whose group has the commands.
    """
    root, name = context.command, "sparsecast"
    context = type(context)(root, info_name=name)  # whatever file it was started from
    lines = [
        f'.TH {name.upper()} 1 "" "{name} {VERSION}" "User Commands"',
        *_section("NAME", [f"{_text(name)} \\- {_text(_brief(root.help))}"]),
        *_section("SYNOPSIS", [_bold(name), r"\fICOMMAND\fR [\fIOPTIONS\fR] [\fIARGUMENTS\fR]"]),
        *_section("DESCRIPTION", [_text(root.help)]),
        ".PP",
        f"{_bold(name)} alone says what to do next.",
        *_section("COMMANDS", _commands(root, context)),
        *_section("ENVIRONMENT", _listed(_ENVIRONMENT)),
        *_section("FILES", ["Of the platform's data folder, or of SPARSECAST_HOME:", *_listed(_FILES)]),
        *_section("EXIT STATUS", _listed(_STATUS)),
        *_section("EXAMPLES", _listed(EXAMPLES)),
    ]
    return "\n".join(lines) + "\n"


def _commands(group: Any, context: Any) -> Iterator[str]:
    """Describe the commands of a group, and theirs, in the order of the help."""
    for name, command in group.commands.items():
        inner = type(context)(command, info_name=name, parent=context)
        arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
        yield f".SS {_bold(inner.command_path)}"
        yield " ".join([_bold(inner.command_path), r"[\fIOPTIONS\fR]", *map(_argument, arguments)])
        for paragraph in (command.help or "").split("\n\n"):
            yield ".PP"
            yield _text(paragraph)
        for parameter in command.get_params(inner):
            shown, meaning = parameter.get_help_record(inner)
            yield from _item(parameter.metavar if parameter in arguments else shown, meaning)
        if hasattr(command, "commands"):
            yield from _commands(command, inner)


def _argument(argument: Any) -> str:
    shown = rf"\fI{argument.metavar.translate(_ESCAPED)}\fR"
    return shown if argument.required or shown.startswith(r"\fI[") else f"[{shown}]"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return [f".SH {title}", *lines]


def _listed(items: dict[str, str]) -> list[str]:
    return [line for name, meaning in items.items() for line in _item(name, meaning)]


def _item(name: str, meaning: str) -> tuple[str, str, str]:
    return ".TP", _bold(name), _text(meaning)


def _bold(text: str) -> str:
    return rf"\fB{text.translate(_ESCAPED)}\fR"


def _text(text: str) -> str:
    """Return lines of roff that show `text`: a dot at the start of one is no request."""
    lines = textwrap.wrap(text.translate(_ESCAPED), 78, break_long_words=False, break_on_hyphens=False)
    return "\n".join(rf"\&{line}" if line.startswith(".") else line for line in lines)


def _brief(text: str) -> str:
    """Return a sentence as the line of a name: without its end, from a small letter."""
    return text[:1].lower() + text[1:].rstrip(".")
