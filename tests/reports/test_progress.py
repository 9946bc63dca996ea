"""Progress bars: on a terminal they move and vanish, elsewhere they leave nothing."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from sparsecast.reports.progress import counted_bar, timed_bar


def show(console):
    with timed_bar(console, "calibrating") as update:
        update(1.0, 90.0, "banded")
    with counted_bar(console, "measuring", 3) as advance:
        advance()


def test_nothing_is_left_where_nobody_watches():
    stream = io.StringIO()
    show(Console(file=stream))
    assert stream.getvalue() == ""


def test_a_terminal_shows_what_is_done_and_the_time_left(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal cannot move the cursor, and gets no bar
    stream = io.StringIO()
    show(Console(file=stream, force_terminal=True, width=100))
    for text in ("calibrating", "1:29 left", "banded", "measuring"):
        assert text in stream.getvalue()


def test_an_error_passes_through_the_bar():
    with pytest.raises(KeyError), timed_bar(Console(file=io.StringIO(), force_terminal=True), "x"):
        raise KeyError
