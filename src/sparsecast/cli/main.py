"""The entry point: commands, errors and exit statuses."""

from __future__ import annotations

import itertools
import os
import re
import sys
import traceback
from typing import Annotated, Any

import typer

from sparsecast import api
from sparsecast.cli.commands import COMMANDS, Panel
from sparsecast.cli.options import INPUT_WRONG, OUR_FAULT, STOPPED, STOPPED_LINE, StoppedError
from sparsecast.errors import InputError, SparsecastError
from sparsecast.system.version import VERSION


def build() -> typer.Typer:
    """Return the application with every command."""
    app = typer.Typer(
        help="Forecasts, plans and runs sparse matrix-vector products, y = A x.",
        invoke_without_command=True,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def root(
        context: typer.Context,
        version: Annotated[
            bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say which this is.")
        ] = False,
    ) -> None:
        """Forecast, plan and run sparse matrix-vector products, y = A x."""
        if context.invoked_subcommand is None:
            print("\n".join(api.first_steps()))

    commands, panels = [(name, COMMANDS.get(name)) for name in COMMANDS.names()], list(Panel)
    for name, entry in sorted(commands, key=lambda item: panels.index(item[1].panel)):
        if isinstance(entry.run, typer.Typer):  # it has commands of its own
            app.add_typer(entry.run, name=name, rich_help_panel=entry.panel.value)
        else:
            # The first clause of its description: the list of all commands then fits a screen.
            brief, *_ = re.split(r"[,;:.](?=\s|$)", (entry.run.__doc__ or "").strip(), maxsplit=1)
            settings = {"allow_interspersed_args": not entry.passes_on}
            app.command(name, short_help=brief, rich_help_panel=entry.panel.value, context_settings=settings)(
                entry.run
            )
    return app


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(f"sparsecast {VERSION}")
        raise typer.Exit


def main() -> None:
    """Run the command line and exit: 0 done, 2 the input was wrong (one line says how), 1 our fault.

    1 is also the status of a check that was asked for and failed.
    """
    sys.exit(_status())


def _status() -> Any:
    try:
        # At such numbers of threads the import of Numba fails, or warns.
        threads = os.environ.get("NUMBA_NUM_THREADS", "1")
        if not threads.strip().isdecimal() or int(threads) == 0:
            raise InputError(
                f"NUMBA_NUM_THREADS={threads}: expected a number from 1; correct it, or unset it"
            )
        status = build()(standalone_mode=False)
        # The parser makes a status of an interrupt, without a word.
        return _complain(STOPPED_LINE, STOPPED) if status == STOPPED else status
    except StoppedError as error:
        return _complain(str(error), STOPPED)
    except InputError as error:
        return _complain(str(error), INPUT_WRONG)
    except typer.TyperException as error:
        what = _with_value(error.format_message(), sys.argv) or "Missing command."
        return _complain(
            f"{what} (sparsecast --help, or sparsecast COMMAND --help, lists what is)", INPUT_WRONG
        )
    except typer.Exit as leaving:
        return leaving.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _complain(STOPPED_LINE, STOPPED)
    except BrokenPipeError:
        # The reader of our output has gone; there is nobody left to tell.
        sys.stderr.close()
        return OUR_FAULT
    except SparsecastError as error:
        return _complain(str(error), OUR_FAULT)
    except MemoryError as error:
        why = f"the memory does not suffice ({error})" if str(error) else "the memory does not suffice"
        return _complain(f"{why}: expected a smaller matrix; use one, or more memory", INPUT_WRONG)
    except Exception as error:  # the last resort: whatever it is, it is our fault, and its trace helps us
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):  # it became an error, as in compiled code
                return _complain(STOPPED_LINE, STOPPED)
            cause = cause.__cause__ or cause.__context__
        traceback.print_exc()
        return _complain("this is a fault of Sparsecast: please report it with the lines above", OUR_FAULT)


def _with_value(message: str, arguments: list[str]) -> str:
    """Return a message of the parser about an option, with the given value added."""
    wrong = re.match(r"Invalid value for '(--[\w-]+)': (.*)", message, re.DOTALL)
    if wrong is None:
        return message
    option, expected = wrong.groups()
    for argument, following in itertools.pairwise([*arguments, ""]):
        name, equals, value = argument.partition("=")
        if name == option:
            return f"{option} {value if equals else following}: {expected}"
    return message


def _complain(line: str, status: int) -> int:
    print(f"sparsecast: {' '.join(line.split())}", file=sys.stderr)
    return status
