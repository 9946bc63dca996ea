"""Progress bars with the remaining time, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from sparsecast.system.progress_events import TIMED

#: Least seconds of reading a file that are shown, and the least part read before they can be estimated.
SHORT_S, _TELL_S = 2.0, 0.3

#: Share of reading in the time until the matrix of a text file is there; its rows are built afterwards.
_READING = 0.7


class _TimeUntil(ProgressColumn):
    """The time until the end of a task, which passes between updates; nothing while that is unknown."""

    def render(self, task: Task) -> Text:
        end_s = task.fields["end_s"]
        if end_s is None:
            return Text("")
        minutes, seconds = divmod(round(max(end_s - perf_counter(), 0.0)), 60)
        return Text(f"{minutes}:{seconds:02d} left")


@contextmanager
def _bar(console: Console, *rest: ProgressColumn) -> Iterator[Progress]:
    """Give a bar that is not shown before its start, and goes at the end."""
    columns = TextColumn("{task.description}", markup=False), BarColumn(bar_width=30), *rest
    progress = Progress(
        *columns,
        console=console,
        transient=True,
        # Without a terminal, a bar would leave nothing but an empty line.
        disable=not console.is_interactive,
        refresh_per_second=2,  # each picture delays the work, which shares the interpreter
    )
    try:
        yield progress
    finally:
        if not progress.disable:  # else Rich below 15 leaves an empty line
            progress.stop()


@contextmanager
def timed_bar(console: Console, what: str) -> Iterator[Callable[[float, float, str], None]]:
    """Show a bar for work of known length in seconds; yield a function (done_s, total_s, item)."""
    with _bar(console, _TimeUntil(), TextColumn("{task.fields[item]}", style="dim")) as progress:
        task = progress.add_task(what, total=1.0, end_s=None, item="")

        def update(done_s: float, total_s: float, item: str) -> None:
            end_s = perf_counter() + total_s - done_s
            progress.update(task, completed=done_s, total=total_s, end_s=end_s, item=item)
            progress.start()  # not before: there may be nothing to do

        yield update


@contextmanager
def counted_bar(console: Console, what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a bar for `total` steps of similar length; yield a function to call after each."""
    with _bar(console, TimeRemainingColumn()) as progress:
        task = progress.add_task(what, total=total)
        progress.start()
        yield lambda: progress.advance(task)


@contextmanager
def parts_bar(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar once a task takes long; yield a function (what, how much is done, of how much or 0)."""
    with _bar(console, _TimeUntil()) as progress:
        task = progress.add_task("", total=1.0, end_s=None)
        shown, start_s = "", 0.0

        def update(what: str, done: int, total: int) -> None:
            nonlocal shown, start_s
            now = perf_counter()
            if what.startswith(TIMED):
                if not total:
                    progress.stop()
                    return
                progress.update(task, description=what, total=total, completed=done, end_s=now + total - done)
                progress.start()
                return
            if what != shown or not done:
                shown, start_s = what, now
            share = _READING if what.startswith("reading ") else 1.0
            part, passed_s = (share * done / total if total else None), now - start_s
            if passed_s < _TELL_S or passed_s < SHORT_S * (1.0 if part is None else part):
                return
            estimated = {"total": None} if not part else {"total": 1.0, "completed": part}
            end_s = start_s + passed_s / part if part else None
            progress.update(task, description=what, end_s=end_s, **estimated)
            progress.start()

        yield update
