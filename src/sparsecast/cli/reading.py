"""Reads matrices and finds profiles, and shows how far that is where it takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.options import screen
from sparsecast.cli.output import Output
from sparsecast.errors import InputError
from sparsecast.system.texts import counted, time

if TYPE_CHECKING:
    from sparsecast import Profile, Structure
    from sparsecast.results.measurement import Pending


def timed_bar(what: str) -> AbstractContextManager[Callable[[float, float, str], None]]:
    """Show a bar for work of known length in seconds: see `reports.progress`, which takes long to import."""
    from sparsecast.reports import progress

    return progress.timed_bar(screen(), what)


def counted_bar(what: str, total: int) -> AbstractContextManager[Callable[[], None]]:
    """Show a bar for `total` steps of similar length."""
    from sparsecast.reports import progress

    return progress.counted_bar(screen(), what, total)


@contextmanager
def shown_parts() -> Iterator[None]:
    """Show a bar for what is read, downloaded or fitted meanwhile and takes long, where somebody watches."""
    from sparsecast.reports.progress import parts_bar
    from sparsecast.system.progress_events import watched

    with parts_bar(screen()) as update, watched(update):
        yield


@shown_parts()
def read_matrix(matrix: str) -> api.Problem:
    """Return what `api.read_matrix` does."""
    return api.read_matrix(matrix)


@shown_parts()
def read_question(question: str) -> tuple[str, api.Problem | Structure]:
    """Return what `api.read_question` does."""
    return api.read_question(question)


@shown_parts()
def profile_for(A: Any, wanted: str | None, **asked: Any) -> Profile:
    """Return the wanted profile, or this machine's, calibrated quickly first if it is not calibrated."""
    return api.own_profile(A, **asked) if wanted is None else api.profile(wanted)


def transposed(question: api.Problem | Structure, notes: list[str]) -> api.Problem:
    """Return the transpose of a matrix; `notes` tell what it takes to build it."""
    if not isinstance(question, api.Problem):
        raise InputError("the transpose without the matrix: expected the matrix; name its file")
    transpose, start = question.transposed(), perf_counter()
    _ = transpose.matrix
    took = f"The transpose was built in {time(perf_counter() - start)} here, before any conversion."
    nothing = "The matrix equals its transpose: nothing is built for products with that."
    notes.append(nothing if transpose is question else took)
    return transpose


def session_for(setting: options.SettingGroup, trust: options.TrustGroup, **more: Any) -> api.Session:
    """Return the session of a command; its first question calibrates this machine if need be."""
    return api.session(setting.profile, **setting.session_options, **trust.session_options, **more)


def tell_taken_over(matrices: int) -> None:
    """Say on standard error how many matrices were not measured again."""
    if matrices:
        text = f"{counted(matrices, 'matrix was', 'matrices were')} measured before: the kept records count"
        screen().print(text, soft_wrap=True)


def pending_output(found: Pending) -> Output:
    """Return what a command with --dry-run prints."""
    from sparsecast.results.measurement import DOCUMENTS

    return Output(DOCUMENTS["measure --dry-run"], found, [found.table()])
