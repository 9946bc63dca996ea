"""Who is told of matrices that are downloaded: the command line has its bars there.

Matrices are named in a dozen places, which need not know that some of them are downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

#: Told of bytes that are done, and of all bytes; 0 where nobody said how many there are.
Tell = Callable[[int, int], None]


def _unseen(what: str) -> AbstractContextManager[Tell]:
    return nullcontext(lambda done, total: None)


#: Shows what takes long; the argument says what it is.
show: Callable[[str], AbstractContextManager[Tell]] = _unseen
