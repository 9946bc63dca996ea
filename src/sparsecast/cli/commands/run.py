"""sparsecast run SCRIPT [ARGS]..."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import argument, flag, option
from sparsecast.cli.output import Output
from sparsecast.cli.reading import profile_for
from sparsecast.errors import InputError, reason_of

if TYPE_CHECKING:
    from sparsecast.results.watching import Seen


@command("run", Panel.MEASUREMENTS, csv=True, passes_on=True)
def run(
    program: Annotated[str, argument("SCRIPT", "A Python file, or with -m the name of a module.")],
    arguments: Annotated[
        list[str] | None, argument("ARGS", "Arguments of the program: all that follows.")
    ] = None,
    is_module: Annotated[bool, flag("-m", "Run a module, as python -m does.")] = False,
    applies: Annotated[
        bool, flag("--apply", "Do the products by plans that are made while the program runs.")
    ] = False,
    page: Annotated[
        Path | None, option("FILE.html", "Write the result as one HTML page, too.", "--output", "-o")
    ] = None,
    force: options.ForceOption = False,
    profile: options.ProfileOption = None,
    threads: options.ThreadsOption = None,
    anyway: options.AnywayOption = False,
) -> Output:
    """Run a program and list its sparse products with SciPy: where they are, and what plans would save.

    The program's output and exit status are its own: the table is on standard error. With --json, the
    document is the last line on standard output.
    """
    from sparsecast import gallery
    from sparsecast.reports.pages.rendering import run_page, write
    from sparsecast.results.watching import DOCUMENTS

    there = not is_module and Path(program).exists()
    if is_module:
        with _as_python(program, (), is_module), suppress(ImportError, ValueError):
            there = importlib.util.find_spec(program) is not None
    if not there:
        what, where = ("module", "from here") if is_module else ("script", "there")
        raise InputError(f"{what} {program} is missing: expected one that Python finds {where}; correct it")
    options.refuse_page(page, force)
    page = page and page.absolute()  # the program may leave the folder
    if profile is not None and Path(profile).is_file():
        profile = str(Path(profile).absolute())
    how: dict[str, Any] = {"threads": threads, "anyway": anyway}
    known = profile_for(gallery("poisson2d", n=10), profile, threads=threads) if applies else None
    process = os.getpid()
    passed = arguments or []
    with api.watch(apply=applies, profile=known, **how) as watch, _as_python(program, passed, is_module):
        status, has_failed = _status_of(program, is_module)
    if os.getpid() != process:  # a child of the program, which has its own end
        raise typer.Exit(status)
    seen = watch.seen()
    if not applies:
        seen = seen.without_plans("the program failed") if has_failed else _planned(watch, seen, profile, how)
    shown: list[Any] = [seen.table(), *seen.sentences()] if seen.products else seen.sentences()
    if page is not None:
        write(run_page(seen, " ".join([program, *passed])), page)
        shown.append(f"{page}: open it in a browser.")
    item = {"program": program, "status": status, "seen": seen}
    return Output(DOCUMENTS["run"], item, shown, seen.notes, status=status, is_beside=True)


def _planned(watch: api.Watch, seen: Seen, profile: str | None, how: dict[str, Any]) -> Seen:
    """Return what was seen with plans, where they can be made; shown without them before a calibration."""
    heaviest = watch.heaviest
    if heaviest is None:
        return seen
    if profile is None and not api.user_path(api.machine_of(api.PROCESSOR).name).exists():
        Output((), None, [seen.table(), *seen.sentences()], is_beside=True).show(as_json=False)
    try:
        return watch.planned(profile_for(heaviest, profile, threads=how["threads"]), **how)
    except Exception as error:  # whatever it is, the program has ended, and its status stays
        return seen.without_plans(reason_of(error))


@contextmanager
def _as_python(program: str, arguments: Sequence[str], is_module: bool) -> Iterator[None]:
    """Let a program find its arguments and its modules as Python would."""
    before = sys.argv, sys.path[:]
    folder = Path.cwd() if is_module else Path(program).resolve().parent
    sys.argv = [program, *arguments]
    if not sys.flags.safe_path and (is_module or not Path(program).is_dir()):
        sys.path[0] = str(folder)
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before


def _status_of(program: str, is_module: bool) -> tuple[int, bool]:
    """Run a program as Python does; return its exit status, and whether an exception ended it."""
    try:
        if is_module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
        status = 0
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        if leaving.code is not None and not isinstance(leaving.code, int):
            print(leaving.code, file=sys.stderr)
    except BaseException as error:  # whatever it is, it is the program's
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_globals.get("__name__") in (__name__, "runpy"):
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return options.STOPPED if isinstance(error, KeyboardInterrupt) else options.OUR_FAULT, True
    with suppress(Exception):  # closed by the program
        sys.stdout.flush()
    return status, False
