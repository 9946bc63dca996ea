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


def profile_for(
    A: Any, wanted: str | None, threads: int | str | None, dtype: str | None, device: str | None
) -> Profile:
    """Return the wanted profile, or this machine's, calibrated quickly first if it is not calibrated."""
    from sparsecast import api
    from sparsecast.reports.progress import timed_bar

    if wanted is not None:
        return api.profile(wanted)
    device = api.PROCESSOR if device is None else device
    with timed_bar(screen(), "calibrating") as on_progress:
        return api.own_profile(A, threads=threads, dtype=dtype, device=device, on_progress=on_progress)


def session_for(
    A: Problem | Structure,
    setting: options.SettingGroup,
    trust: options.TrustGroup,
    *,
    probe_s: float | None = None,
    as_printed: bool = False,
) -> Session:
    """Return the session of a command, with this machine calibrated first if need be.

    What cannot be is refused before that.
    """
    from sparsecast import Structure, api

    asked = trust.session_options | {"as_printed": as_printed}
    api.check_probe(probe_s, api.Trust(**asked), has_matrix=not isinstance(A, Structure))
    if as_printed:
        api.printed_planner(trust.model)
    api.rounding(A, api.Setting(**setting.session_options))
    profile = profile_for(A, setting.profile, setting.threads, setting.dtype, setting.device)
    return api.session(profile, **setting.session_options, **asked)


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
