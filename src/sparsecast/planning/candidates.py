"""The ways of doing a product that are open to a matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import FeatureError, FormatError, InputError, MatrixSizeError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.kernels import KERNEL_DTYPES, KERNELS
from sparsecast.machines.gpu import Device
from sparsecast.records import Candidate


@dataclass(frozen=True, slots=True)
class Target:
    """What all candidates of one question share.

    Attributes
    ----------
    device : str
        A name of KERNELS.
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
        if self.device not in KERNELS:
            raise InputError(
                f"device '{self.device}': expected one of {', '.join(KERNELS)}; name one of them"
            )
        dtypes = KERNEL_DTYPES[self.device]
        if self.dtype not in dtypes:
            where = "" if self.device == "cpu" else f" on {self.device}"
            raise InputError(
                f"dtype '{self.dtype}'{where}: expected one of {', '.join(dtypes)}; name one of them"
            )

    @property
    def value_bytes(self) -> int:
        """Size of a value."""
        return int(np.dtype(self.dtype).itemsize)

    def kernels(self, format_name: str, blocks: RowBlocks, fitted: Sequence[str] = ()) -> NDArray[np.str_]:
        """Return the kernel for each block: the one that the rule of its format chooses.

        Parameters
        ----------
        format_name : str
        blocks : RowBlocks
        fitted : sequence of str
            Where there are some, the only ones to choose from: the first of them stands in for a choice of
            the rule that is not among them.
        """
        rule = KERNELS[self.device].get(format_name)
        chosen = np.array(rule.variants)[rule.choose(blocks)]
        return np.where(np.isin(chosen, fitted), chosen, fitted[0]) if len(fitted) else chosen

    def candidate(self, format_name: str, blocks: RowBlocks, fitted: Sequence[str] = ()) -> Candidate:
        """Return the Candidate of a format for the first of `blocks`, with its kernel of `kernels`."""
        kernel = str(self.kernels(format_name, blocks, fitted)[0])
        return Candidate(format_name, kernel, self.device, self.dtype, self.index_bits, self.threads)


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidates for a whole matrix, and why the other formats are none.

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
    fitted: Callable[[str], Sequence[str]] = lambda name: (),
    device: Device | None = None,
) -> Choice:
    """Return the candidates for a matrix in one block, one for each format with kernels that suits it.

    Parameters
    ----------
    structure : Structure
    target : Target
    fitted : callable
        A format's name to the only kernels to choose from, as in `Target.kernels`.
    device : Device, optional
        Whose memory matrix and vectors have to fit in.
    """
    blocks = RowBlocks.of(structure)
    candidates, refused = [], {}
    for name in KERNELS[target.device].names():
        storage = FORMATS.get(name)
        stored = int(storage.stored_entries(blocks)[0])
        types = target.value_bytes, target.index_bits // 8
        try:
            storage.refuse_unsuited(blocks, *types)
            storage.refuse_excess(structure.nnz, stored, int(storage.predicted_bytes(blocks, *types)[0]))
            if device:
                refuse_beyond_device(name, structure, target, device)
        except (FeatureError, FormatError, MatrixSizeError) as error:
            refused[name] = str(error)
        else:
            candidates.append(target.candidate(name, blocks, fitted(name)))
    return Choice(tuple(candidates), refused)


def refuse_beyond_device(name: str, structure: Structure, target: Target, device: Device) -> None:
    """Raise if a matrix in a format, with x and y, exceeds all the memory that a device has.

    Raises
    ------
    MatrixSizeError
        If it does: known from the description of the device, without one.
    """
    types = target.value_bytes, target.index_bits // 8
    size = int(FORMATS.get(name).predicted_bytes(RowBlocks.of(structure), *types)[0])
    size += (structure.rows + structure.cols) * target.value_bytes
    if size > device.memory_bytes:
        raise MatrixSizeError(
            f"{name.upper()} would take {size / 1e9:,.2f} GB with x and y: expected at most the "
            f"{device.memory_bytes / 1e9:,.2f} GB of {device.name}; use another format, or the device cpu"
        )
