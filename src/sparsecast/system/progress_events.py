"""How far something is that takes long, told to whoever watches.

It is done deep below whoever wants to know: a parameter would go through each reader and each model.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

#: Is told what is done, such as "reading a.mtx", how much is done, and of how much, 0 where it is unknown.
OnPart = Callable[[str, int, int], None]

_on_part: ContextVar[OnPart | None] = ContextVar("on_part", default=None)


@contextlib.contextmanager
def watched(on_part: OnPart) -> Iterator[None]:
    """Have what is read, downloaded or fitted meanwhile tell how far it is."""
    token = _on_part.set(on_part)
    try:
        yield
    finally:
        _on_part.reset(token)


def watcher() -> OnPart | None:
    return _on_part.get()


def tell(what: str, done: int, total: int) -> None:
    """Tell whoever watches how far it is."""
    on_part = _on_part.get()
    if on_part is not None:
        on_part(what, done, total)
