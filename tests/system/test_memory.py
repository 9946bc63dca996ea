"""Free memory: the machine's, or what the limits around the process leave, in made-up control groups."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from sparsecast.system import memory

MACHINE = 10_000_000
NAMES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}


@pytest.fixture(params=(1, 2), ids=("version 1", "version 2"))
def groups(request, tmp_path, monkeypatch):
    """A function that makes a group: path, limit, usage, and inactive file cache or None for no such file."""
    version = request.param
    process, root = tmp_path / "cgroup", tmp_path / "fs"
    monkeypatch.setattr(memory, "_GROUPS_OF_PROCESS", process)
    monkeypatch.setattr(memory, "_GROUPS", root)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=MACHINE))

    def group(path: str, limit: object, usage: object, inactive: int | None = None) -> Path:
        folder = (root / "memory" if version == 1 else root) / path.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        limit_file, usage_file, name = NAMES[version]
        (folder / limit_file).write_text(f"{limit}\n")
        (folder / usage_file).write_text(f"{usage}\n")
        if inactive is not None:
            others = "inactive_file 999999999\n" if version == 1 else "inactive_anon 999999999\n"
            (folder / "memory.stat").write_text(f"anon 5\n{others}{name} {inactive}\n")
        return folder

    def within(path: str) -> None:
        own = f"9:cpu,memory:{path}\n3:pids:{path}\n" if version == 1 else f"0::{path}\n"
        process.write_text(own)

    return SimpleNamespace(version=version, add=group, within=within, root=root)


def test_a_limit_counts_with_what_is_used_of_it(groups):
    groups.within("/a")
    groups.add("/a", 5_000_000, 1_000_000)
    assert memory.free_bytes() == 4_000_000


def test_inactive_file_cache_is_free(groups):
    groups.within("/a")
    groups.add("/a", 5_000_000, 4_000_000, inactive=2_500_000)
    assert memory.free_bytes() == 3_500_000


def test_the_smallest_of_the_nested_limits_counts(groups):
    groups.within("/a/b/c")
    groups.add("/", 9_000_000, 0)
    groups.add("/a", 3_000_000, 1_000_000)
    groups.add("/a/b", 8_000_000, 500_000)
    groups.add("/a/b/c", 6_000_000, 100_000)
    groups.add("/a/other", 10, 0)
    assert memory.free_bytes() == 2_000_000


@pytest.mark.parametrize("limit", ["max", 2**63 - 4096, 2**64, "", "junk"])
def test_what_limits_nothing(groups, limit):
    groups.within("/a")
    groups.add("/a", limit, 1_000_000)
    assert memory.free_bytes() == MACHINE


@pytest.mark.parametrize("missing", (0, 1))
def test_a_missing_file_limits_nothing_and_other_groups_still_count(groups, missing):
    groups.within("/a/b")
    folder = groups.add("/a/b", 1_000, 0)
    (folder / NAMES[groups.version][missing]).unlink()
    assert memory.free_bytes() == MACHINE
    groups.add("/a", 7_000_000, 0)
    assert memory.free_bytes() == 7_000_000


@pytest.mark.parametrize("shape", (0, 1, 7, 1000, (3, 5), (0, 4), (100_000, 2)))
@pytest.mark.parametrize("dtype", ("float32", "complex128", "int32"))
def test_an_aligned_array_begins_with_a_line_and_is_like_any_other(shape, dtype):
    arrays = [memory.aligned_empty(shape, dtype) for _ in range(5)]
    plain = np.empty(shape, dtype)
    for array in arrays:
        assert (array.shape, array.dtype) == (plain.shape, plain.dtype)
        assert not array.size or (array.ctypes.data % 64 == 0 and array.strides == plain.strides)
        assert array.flags.c_contiguous and array.flags.writeable and array.nbytes == plain.nbytes
    assert not any(np.shares_memory(one, other) for one in arrays for other in arrays if one is not other)
