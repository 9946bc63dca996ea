"""Reads matrices and finds profiles, and shows how far that is where it takes long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sparsecast.cli import options
from sparsecast.cli.options import screen
from sparsecast.cli.output import Output

if TYPE_CHECKING:
    from sparsecast import Profile, Structure
    from sparsecast.api import Problem, Session
    from sparsecast.results.measurement import Pending


@contextmanager
def shown_parts() -> Iterator[None]:
    """Show a bar for what is read, downloaded or fitted meanwhile and takes long, where somebody watches."""
    from sparsecast.reports.progress import parts_bar
    from sparsecast.system.progress_events import watched

    with parts_bar(screen()) as update, watched(update):
        yield


def read_matrix(matrix: str) -> Problem:
    """Return what `api.read_matrix` does."""
    from sparsecast import api

    with shown_parts():
        return api.read_matrix(matrix)


def transposed(question: Problem | Structure, notes: list[str]) -> Problem:
    """Return the transpose of a matrix; `notes` tell what it takes to build it."""
    from time import perf_counter

    from sparsecast import Structure
    from sparsecast.errors import InputError
    from sparsecast.system.texts import time

    if isinstance(question, Structure):
        raise InputError("the transpose without the matrix: expected the matrix; name its file")
    transpose = question.transposed()
    start = perf_counter()
    _ = transpose.matrix
    if transpose is question:
        notes.append("The matrix equals its transpose: nothing is built for products with that.")
    else:
        notes.append(
            f"The transpose was built in {time(perf_counter() - start)} here, before any conversion."
        )
    return transpose


def read_question(question: str) -> tuple[str, Problem | Structure]:
    """Return what `api.read_question` does."""
    from sparsecast import api

    with shown_parts():
        return api.read_question(question)


def profile_for(A: Any, wanted: str | None, **asked: Any) -> Profile:
    """Return the wanted profile, or this machine's, calibrated quickly first if it is not calibrated."""
    from sparsecast import api

    with shown_parts():
        return api.own_profile(A, **asked) if wanted is None else api.profile(wanted)


def session_for(setting: options.SettingGroup, trust: options.TrustGroup, **more: Any) -> Session:
    """Return the session of a command; its first question calibrates this machine if need be."""
    from sparsecast import api

    return api.session(setting.profile, **setting.session_options, **trust.session_options, **more)


def tell_taken_over(matrices: int) -> None:
    """Say on standard error how many matrices were not measured again."""
    from sparsecast.system.texts import counted

    if matrices:
        text = f"{counted(matrices, 'matrix was', 'matrices were')} measured before: the kept records count"
        screen().print(text, soft_wrap=True)


def pending_output(found: Pending) -> Output:
    """Return what a command with --dry-run prints."""
    from sparsecast.results.measurement import DOCUMENTS

    return Output(DOCUMENTS["measure --dry-run"], found, [found.table()])
