"""What experiments share: a command made of a generator of rows, checked products, and times."""

from __future__ import annotations

import functools
import inspect
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Annotated, Any

import numba
import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from sparsecast.cli.options import JsonOption
from sparsecast.devices import DEVICES
from sparsecast.devices.product_timer import ProductTimer
from sparsecast.devices.target import Target
from sparsecast.errors import InputError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import detect
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reading import collected
from sparsecast.measuring.timing import Call
from sparsecast.records import Candidate
from sparsecast.results.columns import stored_as
from sparsecast.system import texts

app = typer.Typer(
    help="Experiments that measure Sparsecast. Each prints a table; --json prints its rows.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

#: An experiment yields rows, as values by heading, and sentences that stand below the table.
Row = Mapping[str, Any]
Rows = Iterator[Row | str]

Matrices = Annotated[
    list[str] | None, typer.Argument(metavar="MATRIX...", help="Files, folders or specifications.")
]
Threads = Annotated[int, typer.Option(min=1)]
ProfileName = Annotated[str | None, typer.Option("--profile", help="A profile's name or path.")]

#: Threads that kernels may have in this process.
MOST_THREADS = int(numba.config.NUMBA_NUM_THREADS)

#: No table is wider. Where Rich takes the width of a terminal it shortens columns, some of them to nothing.
_MOST_WIDTH = 10_000

#: Headings with these endings hold shares, which are shown in percent.
_SHARES = ("error", "noise", "share", "within", "regret", "width", "difference")


def experiment(panel: str) -> Callable[[Callable[..., Rows]], Callable[..., Rows]]:
    """Return a decorator that makes a command of a generator of rows; its name is that of the function."""

    def decorate(function: Callable[..., Rows]) -> Callable[..., Rows]:
        @functools.wraps(function)
        def command(*, as_json: bool, **options: Any) -> None:
            try:
                show(list(function(**options)), function.__name__, as_json)
            except InputError as error:
                sys.exit(str(error))

        kind = inspect.Parameter.KEYWORD_ONLY
        given = inspect.signature(function, eval_str=True).parameters.values()
        added = inspect.Parameter("as_json", kind, default=False, annotation=JsonOption)
        parameters = [*(each.replace(kind=kind) for each in given), added]
        command.__signature__ = inspect.Signature(parameters)
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        app.command(function.__name__.replace("_", "-"), rich_help_panel=panel)(command)
        return function

    return decorate


def show(results: list[Row | str], title: str, as_json: bool) -> None:
    """Print rows as a table and the sentences below it, or both as one document."""
    rows = [row for row in results if not isinstance(row, str)]
    sentences = [row for row in results if isinstance(row, str)]
    if as_json:
        print(json.dumps({"rows": rows, "sentences": sentences}, indent=1))
        return
    table = Table(title=title.replace("_", " "), title_justify="left")
    headings = list(dict.fromkeys(heading for row in rows for heading in row))
    for heading in headings:
        is_text = any(isinstance(row.get(heading), str) for row in rows)
        shown = heading.removesuffix("_s").replace(" ", "\n")
        table.add_column(shown, justify="left" if is_text else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(cell(heading, row.get(heading)) for heading in headings))
    if rows:
        Console(width=_MOST_WIDTH).print(table)
    for sentence in sentences:
        print(sentence)


def cell(heading: str, value: Any) -> str:
    """Return a value with the unit or the share that its heading ends with."""
    value = value.item() if isinstance(value, np.generic) else value
    is_share = heading.endswith(_SHARES) and isinstance(value, int | float)
    return texts.percent(value) if is_share else texts.shown(heading, value)


def named(matrices: Iterable[str] | None, gallery: Iterable[str] = ()) -> Iterator[Problem]:
    """Yield the problems of files, folders and specifications, or else some of the gallery."""
    for name in collected(matrices or [f"gallery:{name}" for name in gallery]):
        try:
            problem = Problem.named(name)
            _ = problem.matrix
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
        else:
            print(f"measuring {problem.name}", file=sys.stderr)
            yield problem


def rule_of(A: csr_array[Any], format_name: str, threads: int = 1) -> Candidate:
    """Return a format of a matrix, in full storage, with the kernel that its rule chooses on this machine."""
    machine = detect()
    blocks = RowBlocks.of(structure(A))
    return Target.of(A, machine, threads, None).candidate(format_name, blocks, machine)


def checked_calls(A: csr_array[Any], candidates: Sequence[Candidate]) -> dict[Candidate, Call]:
    """Return products as callables, compared with the reference result; say what does not suit the matrix."""
    timer, calls = ProductTimer(A, candidates[0], DEVICES.get("cpu")), {}
    for candidate in candidates:
        try:
            calls[candidate] = timer.call(timer.build(candidate))
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
    return calls


def checked_product(A: csr_array[Any], format_name: str, threads: int = 1) -> Call:
    """Return the checked product of a format, in the kernel that its rule chooses."""
    calls = list(checked_calls(A, [rule_of(A, format_name, threads)]).values())
    if not calls:
        raise InputError(f"a product in {format_name}: expected a matrix that it suits; name another")
    return calls[0]


def in_words(candidate: Candidate) -> str:
    """Return the format of a candidate, what it stores in fewer bytes, and its kernel."""
    return f"{stored_as(candidate)} {candidate.kernel}"


def timed(task: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call gives, and the seconds that it takes."""
    start = perf_counter()
    result = task()
    return result, perf_counter() - start


def alternated(
    tasks: Mapping[str, Callable[[], Any]],
    rounds: int,
    of: Callable[[list[float]], Any] = statistics.median,
) -> dict[str, Any]:
    """Return the median seconds of tasks that take turns, or another value of them.

    A first turn is not timed.
    """
    turns = [{name: timed(task)[1] for name, task in tasks.items()} for _ in range(rounds + 1)]
    return {name: of([turn[name] for turn in turns[1:]]) for name in tasks}


def mean_and_worst(ratios: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Yield a sentence for each kind of ratios, of which the greatest is the worst."""
    for name, values in ratios.items():
        yield f"{name}: geometric mean {statistics.geometric_mean(values):.3f}, worst {max(values):.3f}."


def error_columns(errors: Sequence[float], what: str = "") -> dict[str, float]:
    """Return median and 90th percentile of the absolute values of errors; `what` they are of comes first."""
    median, high = np.quantile(np.abs(errors), (0.5, 0.9)).tolist()
    return {f"{what}median error": median, f"{what}90th percentile error": high}
