"""Progress bars with the time that is left, on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

# What takes no longer needs no bar of bytes.
_PATIENCE_S = 2.0


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
    with _progress(console, left, item) as progress:
        task = progress.add_task(what, total=1.0, left="?", item="")

        def update(done_s: float, total_s: float, item: str) -> None:
            progress.update(task, completed=done_s, total=total_s, left=_clock(total_s - done_s), item=item)

        yield update


@contextmanager
def counted_bar(console: Console, what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a bar for `total` steps of like length; give a function to call after each."""
    with _progress(console, TimeRemainingColumn()) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)


@contextmanager
def byte_bar(console: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar for bytes, from two seconds on; give a function (done, total), total 0 where unknown."""
    begin = time.monotonic()
    with _progress(console, DownloadColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(what, total=None, visible=False)

        def update(done: int, total: int) -> None:
            is_long = time.monotonic() - begin > _PATIENCE_S
            progress.update(task, completed=done, total=total or None, visible=is_long)

        yield update
