"""Reads matrices, and shows how far reading and fitting are where they take long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sparsecast.cli.options import screen

if TYPE_CHECKING:
    from sparsecast import Structure
    from sparsecast.api import Problem


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


def read_question(question: str) -> tuple[str, Problem | Structure]:
    """Return what `api.read_question` does."""
    from sparsecast import api

    with shown_parts():
        return api.read_question(question)
