"""The data folder: whole writes or none, one writer, and a journal that outlives its writer."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparsecast.errors import BusyError, StorageError
from sparsecast.machines import storage

HOLDER = """
import sys, time
from pathlib import Path
from sparsecast.machines.storage import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def holder(lock: Path) -> Iterator[subprocess.Popen]:
    """Let another process hold `lock` while the body runs."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            process.kill()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_second_writer_is_refused_until_the_lock_is_let_go(tmp_path):
    lock = tmp_path / "deep" / "m.lock"
    with holder(lock), pytest.raises(BusyError), storage.exclusive(lock):
        pytest.fail("the lock was given twice")
    for _ in range(2):
        with storage.exclusive(lock), pytest.raises(BusyError), storage.exclusive(lock):
            pytest.fail("the lock was given twice")
    with pytest.raises(KeyError), storage.exclusive(lock):
        raise KeyError
    with storage.exclusive(lock):
        assert lock.exists()


def test_a_whole_write_takes_the_old_ones_place(tmp_path):
    path = tmp_path / "deep" / "f"
    for text in ("first", "second"):
        storage.write_atomically(path, lambda temporary, text=text: temporary.write_text(text) and None)
        assert path.read_text() == text
    assert names(path.parent) == ["f"]


@pytest.mark.skipif(os.name == "nt", reason="this system has no umask")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_written_file_has_the_permissions_of_any_new_one(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        storage.write_atomically(tmp_path / "f", lambda temporary: temporary.write_text("x") and None)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == mode


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_a_write_that_breaks_off_leaves_the_old_file_alone(tmp_path, error):
    path = tmp_path / "f"
    path.write_text("old")

    def broken(temporary: Path) -> None:
        temporary.write_text("half of the n")
        raise error

    expected = StorageError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        storage.write_atomically(path, broken)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("task", ["ensure_writable", "write_atomically", "journal", "exclusive"])
def test_a_file_in_the_folders_place_is_named(tmp_path, task):
    (tmp_path / "home").write_text("a file")
    below = tmp_path / "home" / "profiles" / "f"

    def attempt() -> None:
        if task == "ensure_writable":
            storage.ensure_writable(below)
        elif task == "write_atomically":
            storage.write_atomically(below, lambda temporary: None)
        else:
            with getattr(storage, task)(below):
                pytest.fail("opened below a file")

    with pytest.raises(StorageError):
        attempt()


@pytest.mark.parametrize(
    ("torn", "kept"), [("one\nha", "one\n"), ("ha", ""), ("one\ntwo\n", "one\ntwo\n"), (None, "")]
)
def test_journal_lines_are_with_the_system_at_once_and_a_torn_one_is_dropped(tmp_path, torn, kept):
    path = tmp_path / "deep" / "j"
    if torn is not None:
        path.parent.mkdir()
        path.write_text(torn)
    with storage.journal(path) as append:
        append("new")
        assert path.read_text() == f"{kept}new\n"


def test_the_data_folder_is_the_variables_or_the_platforms(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARSECAST_HOME", str(tmp_path))
    assert storage.home() == tmp_path
    monkeypatch.delenv("SPARSECAST_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert storage.home().is_relative_to(tmp_path)
    assert storage.home().name == "sparsecast"
