"""A meter of the user's own: a command that prints the joules so far, of a wall meter for instance."""

from __future__ import annotations

import math
import shlex
import subprocess
from dataclasses import dataclass, field

from sparsecast.errors import MeterError

#: Seconds after which a command is taken for dead.
_PATIENCE_S = 10.0


@dataclass(slots=True)
class CommandMeter:
    """What a command prints: one number, the joules since any moment.

    Parameters
    ----------
    command : str
        As in a shell, without its substitutions.

    Raises
    ------
    MeterError
        If it cannot be run now, or prints no number.
    """

    command: str
    source: str = field(default="command", init=False)
    run_s: float = field(default=2.0, init=False)
    step_s: float = field(default=0.1, init=False)

    def __post_init__(self) -> None:
        self._read()

    def joules(self) -> float | None:
        """Return what the command prints now, None where it prints no number."""
        try:
            return self._read()
        except MeterError:
            return None

    def _read(self) -> float:
        try:
            done = subprocess.run(
                shlex.split(self.command),
                capture_output=True,
                text=True,
                timeout=_PATIENCE_S,
                check=True,
            )
            found = float(done.stdout)
        except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
            why = " ".join(str(error).split())
            raise MeterError(
                f"meter command '{self.command}' ({why}): expected a number of joules so far; correct it"
            ) from error
        if not math.isfinite(found):
            raise MeterError(
                f"meter command '{self.command}' prints {found}: expected the joules so far; correct it"
            )
        return found
