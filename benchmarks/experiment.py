"""What experiments share: a command made of a generator of rows, checked products, and times."""

from __future__ import annotations

import functools
import inspect
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, get_type_hints

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Call
from sparsecast.records import Candidate

app = typer.Typer(
    help="Experiments that measure Sparsecast. Each prints a table; --json prints its rows.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

#: An experiment yields rows, as values by heading, and sentences that stand below the table.
Row = Mapping[str, Any]
Rows = Iterator[Row | str]

Matrices = Annotated[list[str] | None, typer.Argument(metavar="MATRIX...", help="Files or specifications.")]
Threads = Annotated[int, typer.Option(min=1)]
Folder = Annotated[
    Path | None, typer.Option(help="Measure every matrix file in it.", exists=True, file_okay=False)
]
KeptLines = Annotated[
    Path | None,
    typer.Option(
        "--lines",
        metavar="FILE",
        help="Add each row to this file at once, as JSON; rows that it has are kept.",
    ),
]
ProfileName = Annotated[str | None, typer.Option("--profile", help="A profile's name or path.")]

#: No table is wider.
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

        hints = get_type_hints(function, include_extras=True)
        json_option = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
        parameters = [
            parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in inspect.signature(function).parameters.items()
        ]
        parameters.append(
            inspect.Parameter(
                "as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=json_option
            )
        )
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        del command.__wrapped__  # type: ignore[attr-defined]
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
    console = Console(width=None if sys.stdout.isatty() else 170)
    # Lines may be longer than those of the terminal: Rich would shorten columns, some of them to nothing.
    needed = console.measure(table, options=console.options.update(width=_MOST_WIDTH)).maximum
    console.width = max(console.width, needed)
    if rows:
        console.print(table)
    for sentence in sentences:
        console.print(sentence, soft_wrap=True, markup=False, highlight=False)


def cell(heading: str, value: Any) -> str:
    """Return a value with the unit or the share that its heading ends with."""
    if value is None:
        return "-"
    if isinstance(value, str | bool):
        return {True: "yes", False: ""}.get(value, str(value))  # type: ignore[call-overload]
    if heading.endswith("_s"):
        return seconds_text(value)
    if heading.endswith(_SHARES):
        return f"{100 * value:.1f} %"
    return f"{value:,}" if isinstance(value, int | np.integer) else f"{value:.3g}"


def seconds_text(seconds: float) -> str:
    """Return a time with three digits in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{100 * share:.1f} %"


def named(matrices: Iterable[str] | None, defaults: Iterable[str] = ()) -> Iterator[Problem]:
    """Yield the problems of files and specifications; say which ones are left out, and why."""
    for specification in matrices or defaults:
        try:
            problem = Problem.named(specification)
            _ = problem.matrix
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
        else:
            print(f"measuring {problem.name}", file=sys.stderr)
            yield problem


def checked_product(
    A: csr_array[Any],
    format_name: str,
    variant: str | None = None,
    threads: int = 1,
    parameters: Mapping[str, Any] | None = None,
) -> Call:
    """Return the product of a format as a callable, after comparing its result with the reference result.

    The kernel is `variant`, or the one that the rule of the format chooses; `parameters` are those of
    `from_csr`.
    """
    from sparsecast.formats import FORMATS

    return checked_call(A, FORMATS.get(format_name).from_csr(A, **(parameters or {})), variant, threads)


def checked_call(A: csr_array[Any], matrix: Any, variant: str | None = None, threads: int = 1) -> Call:
    """Return the product of a matrix that is built, checked as `checked_product`."""
    from sparsecast.devices import DEVICES
    from sparsecast.devices.product_timer import ReferenceProduct

    kernels = DEVICES.get("cpu").kernels.get(matrix.name)
    product = kernels.bind(matrix, variant or chosen_variant(A, matrix.name), threads)
    x, out = uniform_vector(A), np.full(A.shape[0], np.nan, dtype=A.dtype)
    product(x, out)
    ReferenceProduct.of(A, x).check(out, f"{matrix.name} {variant or ''}")
    return lambda: product(x, out)


def chosen_variant(A: csr_array[Any], format_name: str) -> str:
    """Return the kernel that the rule of a format chooses on this machine."""
    from sparsecast.devices import DEVICES
    from sparsecast.features.analysis import structure
    from sparsecast.features.row_blocks import RowBlocks
    from sparsecast.machines.machine import detect

    kernels = DEVICES.get("cpu").kernels.get(format_name)
    return str(kernels.variants[int(kernels.choose(RowBlocks.of(structure(A)), detect(), A.dtype.name)[0])])


def in_words(candidate: Candidate) -> str:
    """Return the format of a candidate with its parameters and its kernel."""
    parameters = [f"{name}={value}" for name, value in candidate.parameters.items()]
    return " ".join([candidate.format, *parameters, candidate.kernel])


def uniform_vector(A: csr_array[Any]) -> NDArray[Any]:
    """Return the same x for every format of a matrix."""
    return np.random.default_rng(2).uniform(-1.0, 1.0, A.shape[1]).astype(A.dtype)


def in_folder(folder: Path | None) -> list[str]:
    """Return the matrix files of a folder, by name."""
    return [] if folder is None else sorted(map(str, folder.glob("*.mtx*")))


class Kept:
    """Rows that are written to a file as they come, if there is one; those that it has are read."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def add(self, key: Mapping[str, Any], measured: Callable[[], dict[str, Any]]) -> None:
        """Measure a row, unless one with these values is there."""
        if any(key.items() <= row.items() for row in self.rows):
            return
        row = measured()
        self.rows.append(row)
        if self._path:
            with self._path.open("a") as stream:
                stream.write(json.dumps(row) + "\n")


def timed(task: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call gives, and the seconds that it takes."""
    start = perf_counter()
    result = task()
    return result, perf_counter() - start


def alternated(tasks: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of tasks that take turns, after a first turn that is not timed."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(rounds + 1):
        for name, task in tasks.items():
            _, taken = timed(task)
            if turn:
                seconds[name].append(taken)
    return seconds


def medians(tasks: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the median seconds of tasks that take turns."""
    return {name: statistics.median(values) for name, values in alternated(tasks, rounds).items()}


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean of some ratios."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def most_threads() -> int:
    """Return the threads that kernels may have in this process."""
    import numba

    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
