"""Archives of NumPy's arrays (``.npz``), read without pickle, and without trust in the sizes they declare."""

from __future__ import annotations

import io
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from sparsecast.system.memory import free_bytes

#: What zipfile and NumPy raise where a file is damaged, beside ValueError; they do not promise less.
DAMAGE = (
    *(TypeError, KeyError, IndexError, EOFError, RuntimeError, ArithmeticError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive by name; they are read-only.

    An OSError says that the file cannot be opened, a ValueError that it is damaged, or declares more bytes
    than the free memory.
    """
    with path.open("rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                members = archive.infolist()
                declared = sum(member.file_size for member in members)
                if declared > free_bytes():
                    raise ValueError(f"it declares {declared} bytes, more than the free memory")
                return {m.filename.removesuffix(".npy"): _array(archive.read(m)) for m in members}
        except ValueError:
            raise
        except DAMAGE as error:
            raise ValueError(str(error)) from error


def declared_bytes(path: Path) -> int:
    """Return the bytes of the arrays of an archive; a ValueError if one declares more than it holds."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as stream:
                shape, _, dtype = _header(stream)
            # Strings of 0 bytes take no room in the file, but SciPy makes numbers of them, which do.
            if int(np.prod(shape, dtype=object)) * max(dtype.itemsize, 1) > member.file_size:
                raise ValueError(f"{member.filename} declares more than its {member.file_size} bytes")
        return sum(member.file_size for member in archive.infolist())


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type at the beginning of a ``.npy`` file."""
    version = npy.read_magic(stream)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    return read_header(stream)


def _array(content: bytes) -> NDArray[Any]:
    """Return the array of a ``.npy`` file, whose header may not declare more than the file holds."""
    stream = io.BytesIO(content)
    shape, is_fortran, dtype = _header(stream)
    if dtype.hasobject:
        raise ValueError("it holds objects of Python")
    count = int(np.prod(shape, dtype=object))
    array = np.frombuffer(content, dtype, count, stream.tell()) if count else np.empty(0, dtype)
    native = array.astype(dtype.newbyteorder("="), copy=False)
    return native.reshape(shape, order="F" if is_fortran else "C")
