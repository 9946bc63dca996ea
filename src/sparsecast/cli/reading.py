"""Reads matrices, and shows how far it is where that takes long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sparsecast.cli.options import screen

if TYPE_CHECKING:
    from sparsecast.features.structure import Structure
    from sparsecast.matrices.problem import Problem


@contextmanager
def watched_reading() -> Iterator[None]:
    """Show a bar for each file that is read meanwhile and takes long; only where somebody watches."""
    from sparsecast.matrices.sources import watched
    from sparsecast.reports.progress import reading_bar

    with reading_bar(screen()) as update, watched(update):
        yield


def read_matrix(matrix: str) -> Problem:
    """Return what `api.read_matrix` does."""
    from sparsecast import api

    with watched_reading():
        return api.read_matrix(matrix)


def read_question(question: str) -> tuple[str, Problem | Structure]:
    """Return what `api.read_question` does."""
    from sparsecast import api

    with watched_reading():
        return api.read_question(question)
