"""A meter of the user: a command that prints the joules so far, for example of a wall meter."""

from __future__ import annotations

import math
import shlex
import subprocess

from sparsecast.errors import MeterError

#: Timeout of a command.
_TIMEOUT_S = 10.0


class CommandMeter:
    """A Meter whose command prints one number, the joules since any moment.

    `command` is as in a shell, without substitutions. A MeterError says that it cannot be run now, or prints
    no number.
    """

    source, run_s, step_s = "command", 2.0, 0.1

    def __init__(self, command: str) -> None:
        self.command = command
        self._read()

    def joules(self) -> float | None:
        try:
            return self._read()
        except MeterError:
            return None

    def _read(self) -> float:
        try:
            process = subprocess.run(
                shlex.split(self.command), capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
            )
            joules = float(process.stdout)
            if not math.isfinite(joules):
                raise ValueError(f"it prints {joules}")
        except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
            why = " ".join(str(error).split())
            raise MeterError(
                f"meter command '{self.command}' ({why}): expected a number of joules so far; correct it"
            ) from error
        return joules
