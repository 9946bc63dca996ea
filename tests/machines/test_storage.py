"""The data folder: whole writes or none, one writer, and a journal that outlives its writer."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
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


def test_a_second_writer_is_refused(tmp_path):
    lock = tmp_path / "m.lock"
    with holder(lock), pytest.raises(BusyError), storage.exclusive(lock):
        pytest.fail("the lock was given twice")


def test_a_killed_writer_lets_go(tmp_path):
    lock = tmp_path / "m.lock"
    with holder(lock) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        with storage.exclusive(lock):
            assert lock.exists()


def test_the_lock_is_given_again_after_it_was_let_go(tmp_path):
    lock = tmp_path / "deep" / "m.lock"
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


@pytest.mark.skipif(os.name == "nt", reason="this system has no umask")
def test_files_of_other_threads_are_as_private_as_ever_during_a_write(tmp_path):
    modes, written = set(), threading.Event()

    def other_thread(own: int) -> None:
        number = 0
        while not written.is_set():
            path = tmp_path / f"other-{own}-{number % 100}"
            path.unlink(missing_ok=True)
            os.close(os.open(path, os.O_CREAT, 0o666))
            modes.add(stat.S_IMODE(path.stat().st_mode))
            number += 1

    before, interval = os.umask(0o077), sys.getswitchinterval()
    others = [threading.Thread(target=other_thread, args=(own,)) for own in range(4)]
    try:
        sys.setswitchinterval(1e-6)
        for other in others:
            other.start()
        for _ in range(2000):
            storage.write_atomically(tmp_path / "f", lambda temporary: None)
    finally:
        sys.setswitchinterval(interval)
        written.set()
        for other in others:
            other.join()
        os.umask(before)
    assert modes == {0o600}


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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_named_in_the_journal_as_in_any_write(tmp_path):
    full = tmp_path / "full"
    full.symlink_to("/dev/full")

    def write(line: str) -> None:
        with full.open("w") as stream:
            stream.write(line)

    with pytest.raises(StorageError, match="No space left on device"):
        storage.write_atomically(tmp_path / "f", lambda temporary: write("x"))


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

    with pytest.raises(StorageError, match=r"home.*cannot be written \(Not a directory\).*SPARSECAST_HOME"):
        attempt()


@pytest.mark.skipif(os.geteuid() == 0, reason="permission bits do not bind the superuser")
def test_a_read_only_folder_is_named(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StorageError, match=r"cannot be written \(Permission denied\)"):
            storage.ensure_writable(tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_a_writable_folder_is_made_and_left_empty(tmp_path):
    storage.ensure_writable(tmp_path / "a" / "b")
    assert names(tmp_path / "a" / "b") == []


def test_journal_lines_are_with_the_system_at_once_and_kept_by_the_next_writer(tmp_path):
    path = tmp_path / "deep" / "j"
    with storage.journal(path) as append:
        append("one")
        assert path.read_text() == "one\n"
    with storage.journal(path) as append:
        append("two")
    assert path.read_text() == "one\ntwo\n"


@pytest.mark.parametrize(("torn", "kept"), [("one\nha", "one\n"), ("ha", ""), ("one\ntwo\n", "one\ntwo\n")])
def test_a_journals_torn_last_line_is_dropped_before_the_next(tmp_path, torn, kept):
    path = tmp_path / "j"
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
