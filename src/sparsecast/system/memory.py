"""Free memory: that of the machine, within the limits of this process's container."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import psutil
from numpy.typing import DTypeLike, NDArray

from sparsecast.errors import MatrixSizeError

#: Bytes of a line of the caches.
CACHE_LINE_BYTES = 64

_GROUPS_OF_PROCESS, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")

# Files of a group: its limit, its usage, and the name in memory.stat of the file cache that can be dropped.
_VERSION_1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
_VERSION_2 = "memory.max", "memory.current", "inactive_file"


def aligned_empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return a new array that begins at a cache line.

    NumPy's arrays begin 16 bytes into one, or elsewhere: vectors then cross lines, and the same product took
    up to 1.2 times as long in one process as in another.
    """
    array = np.dtype(dtype)
    size = int(np.prod(shape)) * array.itemsize
    raw = np.empty(size + CACHE_LINE_BYTES, dtype=np.uint8)
    first = -raw.ctypes.data % CACHE_LINE_BYTES
    return raw[first : first + size].view(array).reshape(shape)


def free_bytes() -> int:
    """Return the bytes of memory that this process can still take without swapping or being killed.

    This is the available memory of the machine, or the rest of the smallest limit of the process's control
    groups (versions 1 and 2), as containers and batch systems set them.
    """
    available: int = psutil.virtual_memory().available
    return min([available, *_left_in_groups(_GROUPS_OF_PROCESS, _GROUPS)])


def require_memory(
    needed_bytes: int, what: str, remedy: str = "choose smaller dimensions or fewer entries a row"
) -> None:
    """Refuse `what`, a matrix or work in the user's words, if it does not fit in memory."""
    available = free_bytes()
    if needed_bytes > available:
        needed, free = (f"{size / 2**30:.3g} GiB" for size in (needed_bytes, available))
        raise MatrixSizeError(f"{what} takes {needed}, expected at most the {free} available; {remedy}")


def _left_in_groups(groups_of_process: Path, groups: Path) -> Iterator[int]:
    """Yield the remaining bytes of each group around the process."""
    try:
        lines = groups_of_process.read_text().splitlines()
    except OSError:  # not Linux, or /proc is not mounted
        return
    for line in lines:
        hierarchy, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            root, files = groups / "memory", _VERSION_1
        elif hierarchy == "0":
            root, files = groups, _VERSION_2
        else:
            continue
        # Without its own namespace, a container sees its path on the host, and its group at the root.
        innermost = PurePosixPath(path)
        for group in (innermost, *innermost.parents):
            with contextlib.suppress(OSError, ValueError):  # no such group, no such file, or "max": no limit
                yield _left(root / group.relative_to("/"), *files)


def _left(group: Path, limit: str, usage: str, inactive: str) -> int:
    most = int((group / limit).read_text())
    used = int((group / usage).read_text())
    with contextlib.suppress(OSError):
        fields = (line.split() for line in (group / "memory.stat").read_text().splitlines())
        used -= next((int(value) for name, value in fields if name == inactive), 0)
    return max(0, most - used)
