"""Damaged files for every reader, each read in a child process: none may end it, hang, or exhaust memory.

A file is one of the samples of `fuzz_samples`, changed once or several times. Changes know what the file is
made of: counts, pointers and lengths are numbers of 4 or 8 bytes, or of digits; archives and compressed parts
are packed again after a change, so that their checksums are right. File `i` of a seed is always the same.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gzip
import io
import json
import multiprocessing
import os
import random
import re
import resource
import struct
import sys
import tempfile
import traceback
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Annotated, Any

import psutil
import typer

from experiment import Rows, experiment
from sparsecast.errors import InputError

#: Memory that a child says is free, and what reading may take beyond that: the libraries' own buffers.
FREE_BYTES, SLACK_BYTES = 64 << 20, 192 << 20

#: Seconds for a file after which a child hangs.
HANGING_S = 20.0

#: A finding.
TOO_MUCH = "more memory than is allowed"

#: Numbers at which arithmetic of 8, 16, 32 or 64 bits, or of doubles, goes wrong.
_ODD = (
    *(0, 1, -1, 2, 3, 7, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**16, 10**6, 1711276040, -1298175770),
    *(2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**32, 2**53 + 1, 10**15, 2**62, 2**63 - 1, -(2**63), 2**64 - 1),
)
_ODD_WORDS = (
    *("", "nan", "-inf", "1e999", "1.0D3", "0x10", "1_000", "-0", "+5", "1-100", "\0", "é", "null"),
    "9" * 400,
)


@dataclass(frozen=True)
class Sample:
    """A whole file that a reader takes, and the parts it has: one of _CHANGES."""

    name: str  # with the suffix that readers go by
    content: bytes
    parts: str


@dataclass(frozen=True)
class Reader:
    """A reader of files: it returns, or raises an InputError of one line."""

    samples: Callable[[], list[Sample]]
    read: Callable[[Path], object]


@dataclass
class Outcome:
    """What became of the files of a reader; findings by what and where they are, with the first file."""

    files: int = 0
    read: int = 0
    refused: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    first: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, what: str, details: str) -> None:
        """Add the next file: what is "read" or "refused", and else a finding."""
        self.read += what == "read"
        self.refused += what == "refused"
        if what not in ("read", "refused"):
            self.findings[what] += 1
            self.first.setdefault(what, (self.files, details))
        self.files += 1


# Changes. Each takes the random numbers of a file and a content, and returns another content.


def _number(rng: random.Random, old: int) -> int:
    return rng.choice((rng.choice(_ODD), old + rng.choice((-1, 1)), 2 * old, -old, rng.getrandbits(32)))


def _slice(rng: random.Random, size: int, most: int) -> slice:
    first = rng.randrange(size + 1)
    return slice(first, min(size, first + rng.randint(1, most)))


def _words(rng: random.Random, content: bytes) -> bytes:
    """Change an aligned number of 1, 2, 4 or 8 bytes."""
    code = rng.choice("iqiqhb")
    size, order = struct.calcsize("=" + code), rng.choice("<<>")
    if len(content) < size:
        return content
    place = rng.randrange(len(content) // size) * size
    (old,) = struct.unpack_from(order + code, content, place)
    new = _number(rng, old) & (256**size - 1)
    return content[:place] + struct.pack(order + code.upper(), new) + content[place + size :]


def _bytes(rng: random.Random, content: bytes) -> bytes:
    """Replace, remove, insert or repeat some bytes, cut the content, or change a number."""
    piece, kind = _slice(rng, len(content), 8), rng.randrange(6)
    before, after = content[: piece.start], content[piece.stop :]
    if kind == 0:
        return before + rng.randbytes(piece.stop - piece.start) + after
    if kind == 1:
        return before + rng.randbytes(rng.randint(0, 8)) + content[piece.start :]
    if kind == 2:
        wide = _slice(rng, len(content), 200)
        return content[: wide.start] + content[wide] * rng.randint(0, 3) + content[wide.stop :]
    return before if kind == 3 else _words(rng, content)


def _text(rng: random.Random, content: bytes) -> bytes:
    """Change a number or a line of a text, or bytes of it."""
    kind = rng.randrange(8)
    numbers = list(re.finditer(rb"[-+]?\d+", content))
    if kind < 4 and numbers:
        # Counts and pointers stand near the beginning.
        chosen = rng.choice(numbers[:12] if rng.random() < 0.5 else numbers)
        new = str(_number(rng, int(chosen[0][:40]))) if rng.random() < 0.7 else rng.choice(_ODD_WORDS)
        text = new.encode()
        text = text.rjust(len(chosen[0])) if rng.random() < 0.5 else text
        return content[: chosen.start()] + text + content[chosen.end() :]
    if kind < 6:
        lines = content.splitlines(keepends=True) or [b""]
        first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
        change = rng.randrange(5)
        if change == 0:
            lines[first], lines[second] = lines[second], lines[first]
        elif change == 1:
            del lines[first : second + 1]
        elif change == 2:
            lines.insert(first, lines[second])
        elif change == 3:
            lines[first] = b" ".join(rng.sample(lines[first].split(), len(lines[first].split()))) + b"\n"
        else:
            lines[first] = lines[first].swapcase().replace(b"\n", rng.choice((b"\r\n", b"\r", b"")))
        return b"".join(lines)
    return _bytes(rng, content)


def _gzip(rng: random.Random, content: bytes) -> bytes:
    return gzip.compress(_text(rng, gzip.decompress(content)), 1)


def _npy(rng: random.Random, content: bytes) -> bytes:
    """Change the header of an array, or a number of it."""
    if rng.random() < 0.4:
        end = content.index(b"\n") + 1
        head = _text(rng, content[10:end].rstrip())
        types = (b"'<i4'", b"'>i8'", b"'<f8'", b"'|b1'", b"'<u8'", b"'|O'", b"'<U4'", b"'<c16'", b"'|S0'")
        head = re.sub(rb"'[<>|]\w\d+'", rng.choice(types), head) if rng.random() < 0.4 else head
        return content[:8] + struct.pack("<H", (len(head) + 1) & 0xFFFF) + head + b"\n" + content[end:]
    begin = content.index(b"\n") + 1
    return content[:begin] + _bytes(rng, content[begin:])


def _zip(rng: random.Random, content: bytes) -> bytes:
    """Change a member of an archive, take it out, or give it another name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name, kind = rng.choice(list(members)), rng.randrange(8)
    if kind == 0:
        del members[name]
    elif kind == 1:
        members[rng.choice(["x.npy", "format.npy", name.upper()])] = members.pop(name)
    elif kind == 2:
        members[name] = rng.choice(list(members.values()))
    else:
        members[name] = (_npy if members[name].startswith(b"\x93NUMPY") else _bytes)(rng, members[name])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return packed.getvalue()


def _mat(rng: random.Random, content: bytes) -> bytes:
    """Change a number of a MATLAB file, within its compressed element if it has one."""
    kind, length = struct.unpack_from("<II", content, 128)
    if kind != 15:
        return content[:128] + _words(rng, content[128:])
    inner = zlib.decompress(content[136 : 136 + length])
    packed = zlib.compress((_words if rng.random() < 0.7 else _bytes)(rng, inner))
    return content[:128] + struct.pack("<II", 15, len(packed)) + packed + content[136 + length :]


_VALUES: tuple[Any, ...] = (
    *(None, True, "", "x", [], {}, [[]], {"a": 1}, -1, 0, 0.5, 1e308, -1e308, 2**31, 2**63, 10**30, 10**400),
    *(float("nan"), float("inf"), "1", "\ud800", "\n", [None], [-1], [10**15]),
)


def _document(rng: random.Random, value: Any) -> Any:
    """Return a document with another value somewhere, or without it."""
    if isinstance(value, dict | list) and value and rng.random() < 0.9:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = rng.choice(keys)
        changed: Any = dict(value) if isinstance(value, dict) else list(value)
        if rng.random() < 0.1:
            del changed[key]
        elif rng.random() < 0.05:
            other = value[rng.choice(keys)]
            changed[key] = other
        else:
            changed[key] = _document(rng, value[key])
        return changed
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.4:
        return _number(rng, int(value)) if abs(value) < 1e18 else -value
    if isinstance(value, str) and value.startswith(("{", "[")) and rng.random() < 0.9:
        return json.dumps(_document(rng, json.loads(value)))
    return rng.choice(_VALUES)


def _json(rng: random.Random, content: bytes) -> bytes:
    """Change a value of each of some lines, which are documents."""
    lines = content.splitlines()
    place = rng.randrange(len(lines))
    lines[place] = json.dumps(_document(rng, json.loads(lines[place]))).encode()
    return b"\n".join(lines) + b"\n"


def _indented_json(rng: random.Random, content: bytes) -> bytes:
    return json.dumps(_document(rng, json.loads(content))).encode()


@lru_cache(maxsize=4)
def _table(content: bytes) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.ParquetFile(io.BytesIO(content)).read()


def _parquet(rng: random.Random, content: bytes) -> bytes:
    """Change a column or the metadata of a table; a checksum of the metadata is made anew."""
    import pyarrow
    import pyarrow.parquet

    from sparsecast.machines.profile import _CHECKSUM_KEY, _checksum

    table = _table(content)
    metadata = dict(table.schema.metadata or {})
    if rng.random() < 0.5:
        key = rng.choice(sorted(metadata.keys() - {_CHECKSUM_KEY}))
        try:
            metadata[key] = json.dumps(_document(rng, json.loads(metadata[key]))).encode()
        except ValueError:  # no document, or a packed one
            metadata[key] = _bytes(rng, metadata[key])
        if rng.random() < 0.05:
            del metadata[key]
    else:
        place = rng.randrange(table.num_columns)
        name, values = table.column_names[place], table.column(place).to_pylist()
        if rng.random() < 0.1:
            table = table.remove_column(place)
        else:
            if rng.random() < 0.5:
                values = [rng.choice(_VALUES[:4])] * len(values)
            elif values:
                values[rng.randrange(len(values))] = _document(rng, values[0])
            with contextlib.suppress(pyarrow.ArrowException, TypeError, ValueError, OverflowError):
                table = table.set_column(place, name, pyarrow.array(values))
    if _CHECKSUM_KEY in metadata:
        metadata[_CHECKSUM_KEY] = _checksum(metadata)
    packed = io.BytesIO()
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), packed)
    return packed.getvalue()


def _safetensors(rng: random.Random, content: bytes) -> bytes:
    """Change the header of a file of tensors, whose length stands before it."""
    (length,) = struct.unpack_from("<Q", content)
    header = json.dumps(_document(rng, json.loads(content[8 : 8 + length]))).encode()
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


#: By what a sample is made of, the changes that know it; bytes of the whole file are changed as well.
_CHANGES: Mapping[str, Callable[[random.Random, bytes], bytes]] = {
    "text": _text,
    "gzip": _gzip,
    "zip": _zip,
    "mat": _mat,
    "json lines": _json,
    "json": _indented_json,
    "parquet": _parquet,
    "safetensors": _safetensors,
    "bytes": _words,
}


def damaged_file(samples: list[Sample], seed: int, index: int) -> tuple[str, bytes]:
    """Return name and content of a file: a sample after one to three changes."""
    rng = random.Random(f"{seed} {index}")
    sample = rng.choice(samples)
    content = sample.content
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        change = _CHANGES[sample.parts] if rng.random() < 0.75 else _bytes
        # What was changed before may be nothing that the change can take apart.
        with contextlib.suppress(Exception):
            content = change(rng, content)
    return sample.name, content


# The child, which reads, and its parent, which sees what becomes of it.


def _read_all(reader: Reader, seed: int, indices: range, folder: Path) -> None:
    """Read damaged files, one after another; write a line for each: what became of it, and details."""
    trace = (folder / "trace").open("w")
    faulthandler.enable(trace)
    sys.stdout = sys.stderr = (folder / "printed").open("w")
    available = SimpleNamespace(available=FREE_BYTES)
    psutil.virtual_memory = lambda: available
    samples = reader.samples()
    for sample in samples:  # loads all that a reader needs
        (folder / sample.name).write_bytes(sample.content)
        reader.read(folder / sample.name)
    warnings.simplefilter("error")
    space = psutil.Process().memory_info().vms + 8 * (FREE_BYTES + SLACK_BYTES)
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    with (folder / "lines").open("w") as lines:
        for index in indices:
            name, content = damaged_file(samples, seed, index)
            (folder / name).write_bytes(content)
            rest, before = psutil.Process().memory_info().rss, _peak_bytes()
            faulthandler.dump_traceback_later(HANGING_S, exit=True, file=trace)
            what, details = _outcome(reader, folder / name)
            # Libraries grow by a little with each of 30,000 files.
            is_much = _peak_bytes() > max(before, rest + FREE_BYTES + SLACK_BYTES)
            if is_much:
                what, details = TOO_MUCH, name
            print(json.dumps((what, details)), file=lines, flush=True)
            if is_much:
                os._exit(0)  # the peak hides those after it
    os._exit(0)  # nothing of the parent is to be ended here


def _outcome(reader: Reader, path: Path) -> tuple[str, str]:
    """Return what became of a file, and details of a finding."""
    try:
        reader.read(path)
    except InputError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, MemoryError):
                return TOO_MUCH, str(error)
            cause = cause.__cause__
        return ("a refusal of several lines" if "\n" in str(error) else "refused"), str(error)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = ([f for f in frames if "sparsecast" in f.filename] or frames)[-1]
        return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}", f"{error}"[:300]
    return "read", ""


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def read_damaged(reader: Reader, seed: int, files: int) -> Outcome:
    """Read damaged files of a seed in children; a new one goes on after one that died.

    Raises
    ------
    RuntimeError
        If an undamaged sample is not read.
    """
    outcome = Outcome()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as name:
        folder = Path(name)
        while outcome.files < files:
            (folder / "lines").unlink(missing_ok=True)
            arguments = reader, seed, range(outcome.files, files), folder
            child = multiprocessing.get_context("fork").Process(target=_read_all, args=arguments, daemon=True)
            child.start()
            child.join()
            printed, trace = (folder / "printed").read_text()[-2000:], (folder / "trace").read_text()
            if not (folder / "lines").exists():
                raise RuntimeError(f"a whole sample is not read: {printed}")
            for line in (folder / "lines").read_text().splitlines():
                outcome.add(*json.loads(line))
            if child.exitcode:
                is_hanging = trace.startswith("Timeout")
                outcome.add("hang" if is_hanging else f"ended with status {child.exitcode}", trace + printed)
    return outcome


@experiment("Readers")
def damaged_files(
    readers: Annotated[list[str] | None, typer.Argument(metavar="READER...", help="By default all.")] = None,
    files: Annotated[int, typer.Option(min=1, help="Files of each reader.")] = 1000,
    seed: Annotated[
        int | None, typer.Option(help="Makes the same files again; by default a new one.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the first file of each finding in this folder.")
    ] = None,
) -> Rows:
    """Read damaged files of every kind: each is read or refused in one line, within bounds."""
    from fuzz_samples import READERS

    seed = random.SystemRandom().getrandbits(32) if seed is None else seed
    if unknown := [name for name in readers or () if name not in READERS]:
        raise InputError(f"reader '{unknown[0]}': expected {', '.join(READERS)}; name one of them")
    yield f"Seed {seed}."
    for name in readers or READERS:
        begin = monotonic()
        outcome = read_damaged(READERS[name], seed, files)
        row = {
            "reader": name,
            "files": outcome.files,
            "read": outcome.read,
            "refused": outcome.refused,
            "findings": sum(outcome.findings.values()),
            "took_s": monotonic() - begin,
        }
        print(row, file=sys.stderr)  # at once: the run may be ended
        yield row
        for what, (index, details) in outcome.first.items():
            yield f"{name}: {what}, {outcome.findings[what]} times, first in file {index}:\n{details}"
            if keep:
                file_name, content = damaged_file(READERS[name].samples(), seed, index)
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{name}-{index}-{file_name}").write_bytes(content)
