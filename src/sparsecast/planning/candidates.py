"""Candidates: the ways to do a product with a matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices import DEVICES
from sparsecast.errors import FeatureError, FormatError, InputError, MatrixSizeError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Machine
from sparsecast.records import Candidate, Parameters


@dataclass(frozen=True, slots=True)
class Target:
    """What all candidates of one question share.

    Attributes
    ----------
    device : str
        A name of DEVICES.
    dtype : str
        One of DTYPES.
    index_bits : int
        32 or 64, as in the matrix.
    threads : int
    """

    device: str
    dtype: str
    index_bits: int
    threads: int

    def __post_init__(self) -> None:
        dtypes = DEVICES.get(self.device).dtypes
        if self.dtype not in dtypes:
            raise InputError(
                f"dtype '{self.dtype}' on {self.device}: expected one of {', '.join(dtypes)}; "
                f"name one of them"
            )

    @property
    def value_bytes(self) -> int:
        """Size of a value."""
        return int(np.dtype(self.dtype).itemsize)

    def kernels(
        self, format_name: str, blocks: RowBlocks, machine: Machine, fitted: Sequence[str] = ()
    ) -> NDArray[np.str_]:
        """Return the kernel for each block: the one that the rule of its format chooses.

        Parameters
        ----------
        format_name : str
        blocks : RowBlocks
        machine : Machine
            That is asked about.
        fitted : sequence of str
            If given, the only kernels to choose from. If the rule chooses another one, the first of them is
            taken.
        """
        rule = DEVICES.get(self.device).kernels.get(format_name)
        chosen = np.array(rule.variants)[rule.choose(blocks, machine, self.dtype)]
        return np.where(np.isin(chosen, fitted), chosen, fitted[0]) if len(fitted) else chosen

    def candidate(
        self, format_name: str, blocks: RowBlocks, machine: Machine, fitted: Sequence[str] = ()
    ) -> Candidate:
        """Return the Candidate of a format for the first of `blocks`, with its kernel of `kernels`."""
        kernel = str(self.kernels(format_name, blocks, machine, fitted)[0])
        layout = Parameters(DEVICES.get(self.device).kernels.get(format_name).layout)
        return Candidate(format_name, kernel, self.device, self.dtype, self.index_bits, self.threads, layout)

    def format_bytes(self, format_name: str, blocks: RowBlocks) -> NDArray[np.int64]:
        """Return the bytes that each block would have in a format, as the device lays it out."""
        layout = DEVICES.get(self.device).kernels.get(format_name).layout
        storage: Any = FORMATS.get(format_name)
        size: NDArray[np.int64] = storage.predicted_bytes(
            blocks, self.value_bytes, self.index_bits // 8, **layout
        )
        return size


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidates for a whole matrix, and why the other formats are left out.

    Attributes
    ----------
    candidates : tuple of Candidate
    refused : dict of str to str
        One line for each format that does not suit, by its name.
    """

    candidates: tuple[Candidate, ...]
    refused: dict[str, str]


def whole_matrix(
    structure: Structure,
    target: Target,
    machine: Machine,
    fitted: Callable[[str], Sequence[str]] = lambda name: (),
) -> Choice:
    """Return the candidates for a matrix in one block, one for each format with kernels that suits it.

    Parameters
    ----------
    structure : Structure
    target : Target
    machine : Machine
        That is asked about: its rules choose, and matrix and vectors have to fit in its memory.
    fitted : callable
        A format's name to the only kernels to choose from, as in `Target.kernels`.
    """
    blocks = RowBlocks.of(structure)
    candidates, refused = [], {}
    kernels = DEVICES.get(target.device).kernels
    for name in kernels.names():
        storage: Any = FORMATS.get(name)
        size = int(target.format_bytes(name, blocks)[0])
        stored = int(storage.stored_entries(blocks, **kernels.get(name).layout)[0])
        try:
            storage.refuse_unsuited(blocks, target.value_bytes, target.index_bits // 8)
            storage.refuse_padding(structure.nnz, stored, size)
            refuse_beyond_memory(name.upper(), size, structure, target, machine)
        except (FeatureError, FormatError, MatrixSizeError) as error:
            refused[name] = str(error)
        else:
            candidates.append(target.candidate(name, blocks, machine, fitted(name)))
    return Choice(tuple(candidates), refused)


def refuse_beyond_memory(
    what: str, size_bytes: int, structure: Structure, target: Target, machine: Machine
) -> None:
    """Raise if a built matrix, with x and y, exceeds all the memory that products on a machine have.

    Parameters
    ----------
    what : str
        For the message.
    size_bytes : int
        Of the matrix in its format, or of all blocks in theirs.
    structure : Structure
    target : Target
    machine : Machine
        That is asked about, which need not be the one at hand: its description tells its memory.

    Raises
    ------
    MatrixSizeError
        If it does.
    """
    total = size_bytes + (structure.rows + structure.cols) * target.value_bytes
    if total > machine.product_memory_bytes:
        name, instead = (
            (machine.gpu.name, "the device cpu") if machine.gpu else (machine.name, "a larger one")
        )
        raise MatrixSizeError(
            f"{what} would take {total / 1e9:,.2f} GB with x and y: expected at most the "
            f"{machine.product_memory_bytes / 1e9:,.2f} GB of {name}; use another format, or {instead}"
        )
