"""Progress of long work, reported to a watcher in the context.

The work is far below the command that shows it: a parameter would go through each reader and each model.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

#: Called with what is done, such as "reading a.mtx", how much is done, and of how much (0 if unknown).
OnPart = Callable[[str, int, int], None]

#: How the name of work begins whose seconds are known before: it reports seconds, and 0 of 0 at its end.
TIMED = "calibrating "

_on_part: ContextVar[OnPart | None] = ContextVar("on_part", default=None)


@contextlib.contextmanager
def watched(on_part: OnPart) -> Iterator[None]:
    """Call `on_part` with the progress of all work within the context."""
    token = _on_part.set(on_part)
    try:
        yield
    finally:
        _on_part.reset(token)


def watcher() -> OnPart | None:
    return _on_part.get()


def tell(what: str, done: int, total: int) -> None:
    """Report progress to the watcher, if there is one."""
    on_part = _on_part.get()
    if on_part is not None:
        on_part(what, done, total)
