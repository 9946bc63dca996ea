"""The commands of `sparsecast`: one file for each, here or in the folder of a paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

import typer

from sparsecast.system.registry import Registry


class Panel(Enum):
    """What commands are for: the headings of `sparsecast --help`, in their order."""

    MATRICES = "Look at matrices"
    MACHINES = "Machines"
    FORECASTS = "Forecast and decide"
    MEASUREMENTS = "Measure and check"
    SHELL = "The shell"


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a group of commands, and the heading that it stands under."""

    run: Callable[..., Any] | typer.Typer
    panel: Panel


#: Every command, by name.
COMMANDS: Registry[Command] = Registry("command", "sparsecast.cli.commands")

Run = TypeVar("Run", bound=Callable[..., Any])


def command(name: str, panel: Panel) -> Callable[[Run], Run]:
    """Return a decorator that makes a function the command `name`; its parameters are the arguments."""

    def enter(run: Run) -> Run:
        COMMANDS.register(name)(Command(run, panel))
        return run

    return enter
