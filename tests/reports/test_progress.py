"""Progress bars: on a terminal they move and vanish, elsewhere they leave nothing."""

import io

import pytest
from rich.console import Console

from sparsecast.reports import progress
from sparsecast.reports.progress import counted_bar, parts_bar, timed_bar


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


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only when a test says so."""
    now = [100.0]
    monkeypatch.setattr(progress, "perf_counter", lambda: now[0])
    monkeypatch.setenv("TERM", "xterm")
    return now


def read(clock, seconds, console):
    with parts_bar(console) as update:
        for part in range(5):
            update("reading wide [b].mtx", 25 * part, 100)
            clock[0] += seconds / 4


def test_a_file_that_is_read_at_once_shows_nothing(clock):
    stream = io.StringIO()
    read(clock, 1.2, Console(file=stream, force_terminal=True, width=100))
    assert stream.getvalue() == ""


def test_a_long_file_shows_its_name_and_the_time_left(clock):
    stream = io.StringIO()
    read(clock, 42.0, Console(file=stream, force_terminal=True, width=100))
    assert "reading wide [b].mtx" in stream.getvalue()
    # A quarter of the bytes took 10.5 s of 60: the rows are built after them.
    assert "0:50 left" in stream.getvalue()


def test_a_long_file_leaves_nothing_where_nobody_watches(clock):
    stream = io.StringIO()
    read(clock, 42.0, Console(file=stream))
    assert stream.getvalue() == ""
