"""Matrices in MATLAB's .mat files of versions 5 and 7.

SciPy's reader ends the process at an element of unknown type, takes one imaginary part for all, and loses
imaginary parts in conversions to MATLAB's types (decision 78). A separate process
would solve only the first of these, at 0.8 s per file. Checking every type and length first is reading the
file, so the few elements of a matrix are read here (decision 78).
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sparsecast.errors import InputError
from sparsecast.matrices.assembly import Contents, from_packed
from sparsecast.matrices.npz import from_scipy
from sparsecast.matrices.sources import check_memory, damaged, failures_of, inflater, shown
from sparsecast.matrices.values import require_imaginary

_HEADER_BYTES = 128
_HDF5_SIGNATURE, _HDF5_VERSIONS = b"\x89HDF\r\n\x1a\n", (b"\0\2IM", b"\2\0MI")
# By the version and the mark of byte order that end the header.
_ORDERS = {b"\0\1IM": "<", b"\1\0MI": ">"}

# Types of elements.
_CHARACTERS, _INT32, _UINT32, _MATRIX, _COMPRESSED = 1, 5, 6, 14, 15
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}

# Classes of variables.
_STRUCT, _SPARSE, _SINGLE = 2, 5, 7
_INTEGERS = range(8, 16)
_DENSE = (6, _SINGLE, *_INTEGERS)

# Bytes at the beginning of a variable that hold its class, dimensions and name.
_HEAD_BYTES = 1024

# Greatest number of variables in a file of one matrix.
_MOST_VARIABLES = 10_000


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable: its first elements, and its place in the file."""

    name: str
    kind: int
    is_complex: bool
    dims: tuple[int, ...]
    position: int = 0
    length: int = 0
    compressed: bool = False

    @property
    def held(self) -> np.dtype[Any]:
        """Type of its values; they may be stored in a smaller one."""
        if self.is_complex:
            return np.dtype(np.complex64 if self.kind == _SINGLE else np.complex128)
        return np.dtype(np.float32 if self.kind == _SINGLE else np.float64)


class _Elements:
    """The elements in a piece of a file, in order; a ValueError if they exceed it."""

    def __init__(self, content: bytes | memoryview, order: str) -> None:
        self._content = memoryview(content)
        self._order = order
        self._position = 0

    def next(self, *expected: int) -> tuple[int, memoryview]:
        """Return type and content of the next element, which must be one of the types `expected`."""
        begin = self._position
        if begin + 8 > len(self._content):
            raise ValueError("it ends where another element is expected")
        kind, length = struct.unpack_from(f"{self._order}II", self._content, begin)
        if kind >> 16:
            # A small element: type and length share a word, and the content follows in the next.
            kind, length, first = kind & 0xFFFF, kind >> 16, begin + 4
            self._position = begin + 8
            if length > 4:
                raise ValueError(f"a small element declares {length} bytes")
        else:
            first = begin + 8
            self._position = first + -(-length // 8) * 8
        if first + length > len(self._content):
            raise ValueError(f"an element declares {length} bytes, {len(self._content) - first} are there")
        if kind not in expected:
            raise ValueError(f"an element is of type {kind}, expected {' or '.join(map(str, expected))}")
        return kind, self._content[first : first + length]

    def numbers(self, *expected: int) -> npt.NDArray[Any]:
        kind, content = self.next(*(expected or _NUMBERS))
        stored = np.dtype(f"{self._order}{_NUMBERS[kind]}")
        return np.frombuffer(content, dtype=stored).astype(stored.newbyteorder("="), copy=False)

    def variable(self) -> _Variable:
        """Return the description at the beginning of a variable."""
        flags = self.numbers(_UINT32)
        dims = self.numbers(_INT32)
        _, name = self.next(_CHARACTERS)
        if len(flags) != 2 or len(dims) < 2 or int(dims.min()) < 0:
            raise ValueError(f"a variable has {len(flags)} flags and dimensions {dims.tolist()[:4]}")
        return _Variable(
            name=bytes(name).decode("latin-1"),
            kind=int(flags[0]) & 0xFF,
            is_complex=bool(flags[0] & 0x800),
            dims=tuple(dims.tolist()),
        )


def read_mat(path: Path, dtype: np.dtype[Any] | None) -> Contents:
    """Read the one matrix of a MATLAB file.

    This is its one sparse matrix, or ``Problem.A`` as in the SuiteSparse collection, or its one dense matrix
    of numbers.
    """
    with failures_of(path), path.open("rb") as file:
        try:
            header = file.read(_HEADER_BYTES)
            version = header[124:128]
            if header.startswith(_HDF5_SIGNATURE) or b"MATLAB 7.3" in header or version in _HDF5_VERSIONS:
                problem = "is a MATLAB file of version 7.3 (HDF5), which is not taken"
                raise damaged(path, problem, "save with -v7")
            if version not in _ORDERS:
                problem = f"is no MATLAB file of version 5 or 7: begins {shown(header[:20])}"
                raise damaged(path, problem, "save with -v7")
            order = _ORDERS[version]
            variable = _choose(path, _variables(path, file, order))
            elements = _Elements(_content(file, variable, order), order)
            variable = elements.variable()
            if variable.kind == _STRUCT:
                variable, elements = _problem_matrix(elements, variable, order)
            return _matrix(path, elements, variable, dtype)
        except InputError:
            raise
        except (ValueError, IndexError, struct.error) as error:
            raise damaged(path, f"is a damaged .mat file ({error})", "save it again with -v7") from error


def _variables(path: Path, file: BinaryIO, order: str) -> list[_Variable]:
    """Return every variable of the file; its declared size must be true and fit in memory."""
    variables: list[_Variable] = []
    position, size = _HEADER_BYTES, path.stat().st_size
    while position < size:
        file.seek(position)
        tag = file.read(8)
        kind, length = struct.unpack(f"{order}II", tag) if len(tag) == 8 else (0, 8)
        if position + 8 + length > size:
            raise damaged(path, f"ends {position + 8 + length - size} bytes before the variable it began")
        compressed = kind == _COMPRESSED
        head = file.read(min(length, _HEAD_BYTES))
        declared = length
        if compressed:
            inner = inflater().decompress(head, _HEAD_BYTES)
            kind, declared = struct.unpack_from(f"{order}II", inner)
            head = inner[8 : 8 + declared]
        if kind != _MATRIX or len(variables) == _MOST_VARIABLES:
            raise ValueError(f"after {len(variables)} variables comes an element of type {kind}")
        if declared:
            check_memory(path, 2 * declared, f"a variable of {declared} bytes")
            variable = _Elements(head, order).variable()
            variables.append(replace(variable, position=position + 8, length=length, compressed=compressed))
        position += 8 + length
    return variables


def _choose(path: Path, variables: list[_Variable]) -> _Variable:
    stored_sparse = [one for one in variables if one.kind == _SPARSE]
    problems = [one for one in variables if one.kind == _STRUCT and one.name == "Problem"]
    dense = [one for one in variables if one.kind in _DENSE and len(one.dims) == 2]
    candidates = stored_sparse or problems or dense
    if len(candidates) == 1:
        return candidates[0]
    names = ", ".join(one.name for one in candidates or variables)
    contents = f"{len(candidates)} among its variables ({names[:80]})" if variables else "no variable"
    raise damaged(path, f"should hold one matrix and holds {contents}", "save the matrix alone, with -v7")


def _content(file: BinaryIO, variable: _Variable, order: str) -> bytes:
    """Return the elements of a variable, decompressed, up to its declared size."""
    file.seek(variable.position)
    content = file.read(variable.length)
    if not variable.compressed:
        return content
    unpacked = inflater()
    tag = unpacked.decompress(content, 8)
    (declared,) = struct.unpack_from(f"{order}I", tag, 4)
    # One byte more, to reach the checksum at the end and to notice a longer stream.
    body: bytes = unpacked.decompress(unpacked.unconsumed_tail, declared + 1)
    if len(body) > declared:
        raise ValueError(f"variable '{variable.name}' declares {declared} bytes and holds more")
    if not unpacked.eof:
        raise EOFError
    return body


def _problem_matrix(elements: _Elements, holder: _Variable, order: str) -> tuple[_Variable, _Elements]:
    """Return the field A of a structure: its description, and its remaining elements."""
    width = int(elements.numbers(_INT32)[0])
    _, text = elements.next(_CHARACTERS)
    starts = range(0, len(text), max(width, 1))
    names = [bytes(text[k : k + width]).split(b"\0")[0].decode("latin-1") for k in starts]
    if math.prod(holder.dims) != 1 or "A" not in names:
        raise ValueError(f"structure '{holder.name}' has the fields {', '.join(names)[:80]} and no A")
    for _ in range(names.index("A")):
        elements.next(_MATRIX)
    _, content = elements.next(_MATRIX)
    inner = _Elements(content, order)
    return inner.variable(), inner


def _matrix(path: Path, elements: _Elements, variable: _Variable, dtype: np.dtype[Any] | None) -> Contents:
    target = variable.held if dtype is None else dtype
    require_imaginary(variable.held, target, str(path))
    if len(variable.dims) != 2:
        raise ValueError(f"variable '{variable.name}' has {len(variable.dims)} dimensions, expected 2")
    rows, cols = variable.dims
    if variable.kind == _SPARSE:
        row_numbers, starts, values = elements.numbers(), elements.numbers(), _values(elements, variable)
        if row_numbers.dtype.kind not in "iu" or len(starts) != cols + 1 or starts.dtype.kind not in "iu":
            raise ValueError(f"a sparse matrix of {cols} columns has {len(starts)} column starts")
        stored = int(starts[-1])
        if not 0 <= stored <= min(len(row_numbers), len(values)):
            raise ValueError(f"{stored} entries have {len(row_numbers)} row numbers and {len(values)} values")
        matrix = sparse.csc_array((values[:stored], row_numbers[:stored], starts), shape=(rows, cols))
        return Contents(from_scipy(path, matrix, target))
    if variable.kind not in _DENSE:
        raise ValueError(f"variable '{variable.name}' is of class {variable.kind}, expected a matrix")
    dense = _values(elements, variable)
    if len(dense) != rows * cols:
        raise ValueError(f"a matrix of {rows} rows and {cols} columns has {len(dense)} values")
    needed = (24 + 4 * max(8, target.itemsize)) * len(dense)
    check_memory(path, needed, f"a dense matrix of {rows} rows and {cols} columns")
    note = f"holds '{variable.name}' as a dense matrix: its zeros are not stored"
    is_integer = variable.kind in _INTEGERS
    return Contents(from_packed(dense.astype(target), (rows, cols)), (note,), is_integer=is_integer)


def _values(elements: _Elements, variable: _Variable) -> npt.NDArray[Any]:
    """Return the values of a variable, whose real and imaginary parts are separate elements."""
    real = elements.numbers()
    if not variable.is_complex:
        return real
    imaginary = elements.numbers()
    if len(real) != len(imaginary):
        raise ValueError(f"{len(real)} real parts have {len(imaginary)} imaginary ones")
    values = np.empty(len(real), dtype=variable.held)
    values.real, values.imag = real, imaginary
    return values
