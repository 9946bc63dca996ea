"""The commands of `sparsecast`: one file for each, here or in the folder of a paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

import typer

from sparsecast.cli.output import Output, printed
from sparsecast.system.registry import Registry


class Panel(Enum):
    """What commands are for: the headings of `sparsecast --help`, in their order."""

    MATRICES = "Look at matrices"
    MACHINES = "Machines"
    FORECASTS = "Forecast and decide"
    MEASUREMENTS = "Measure and check"


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a group of commands, and the heading that it stands under.

    Where it `passes_on`, options behind the first argument are those of another program.
    """

    run: Callable[..., Any] | typer.Typer
    panel: Panel
    passes_on: bool = False


#: Every command, by name.
COMMANDS: Registry[Command] = Registry("command", "sparsecast.cli.commands")

Run = TypeVar("Run", bound=Callable[..., Output | None])


def command(
    name: str, panel: Panel, *, figure: bool = False, csv: bool = False, passes_on: bool = False
) -> Callable[[Run], Run]:
    """Return a decorator that makes a function the command `name`; its parameters are the arguments.

    `figure` and `csv` tell whether the Output that it returns can be drawn, and has a table, which
    `--csv` and `--markdown` write; `passes_on` is that of a Command.
    """

    def enter(run: Run) -> Run:
        COMMANDS.register(name)(Command(printed(run, figure=figure, csv=csv), panel, passes_on))
        return run

    return enter
