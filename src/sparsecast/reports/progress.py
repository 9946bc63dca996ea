"""Progress bars with the time that is left, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

#: Nothing is shown of a file that is read in less, in seconds; nor before so much is read that one can tell.
SHORT_S, _TELL_S = 2.0, 0.3

#: Of the time until the matrix of a text file is there, what its bytes take to read: its rows are built then.
_READING = 0.7


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    return f"{minutes}:{rest:02d}"


def _progress(console: Console, *rest: ProgressColumn) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(bar_width=30), *rest
    # Where nobody watches, a bar would leave nothing but an empty line.
    return Progress(*columns, console=console, transient=True, disable=not console.is_interactive)


@contextmanager
def timed_bar(console: Console, what: str) -> Iterator[Callable[[float, float, str], None]]:
    """Show a bar for work whose length is known in seconds; give a function (done_s, total_s, item)."""
    left, item = TextColumn("{task.fields[left]} left"), TextColumn("{task.fields[item]}", style="dim")
    progress = _progress(console, left, item)
    task = progress.add_task(what, total=1.0, left="", item="")

    def update(done_s: float, total_s: float, item: str) -> None:
        progress.update(task, completed=done_s, total=total_s, left=_clock(total_s - done_s), item=item)
        progress.start()  # not before: there may be nothing to do

    try:
        yield update
    finally:
        progress.stop()


@contextmanager
def counted_bar(console: Console, what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a bar for `total` steps of like length; give a function to call after each."""
    with _progress(console, TimeRemainingColumn()) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)


@contextmanager
def parts_bar(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar for what takes long; give a function (what, how much is done, of how much or 0)."""
    if not console.is_interactive:
        yield lambda what, done, total: None
        return
    bar = _PartsBar(console)
    try:
        yield bar.update
    finally:
        bar.progress.stop()


class _PartsBar:
    """A bar that appears when something turns out to take long, and begins again with the next thing."""

    def __init__(self, console: Console) -> None:
        # Few pictures a second: each holds up the parser, which shares the interpreter with it.
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            _TimeUntil(),
            console=console,
            transient=True,
            refresh_per_second=2,
        )
        self._task = self.progress.add_task("", total=1.0, end_s=None)
        self._what, self._start_s, self._is_shown = "", 0.0, False

    def update(self, what: str, done: int, total: int) -> None:
        now = perf_counter()
        if what != self._what or not done:
            self._what, self._start_s = what, now
        share = _READING if what.startswith("reading ") else 1.0
        part, passed_s = (share * done / total if total else None), now - self._start_s
        if passed_s < _TELL_S or passed_s < SHORT_S * (1.0 if part is None else part):
            return
        known = {"total": None} if not part else {"total": 1.0, "completed": part}
        end_s = self._start_s + passed_s / part if part else None
        self.progress.update(self._task, description=what, end_s=end_s, **known)
        if not self._is_shown:
            self._is_shown = True
            self.progress.start()


class _TimeUntil(ProgressColumn):
    """The time left until the moment that a task ends, which passes while nothing is told."""

    def render(self, task: Task) -> Text:
        """Return the time left; nothing where the end is unknown."""
        end_s = task.fields["end_s"]
        return Text("" if end_s is None else f"{_clock(end_s - perf_counter())} left")
