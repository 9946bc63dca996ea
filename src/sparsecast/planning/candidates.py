"""Candidates: the ways to do a product with a matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sparsecast.devices import DEVICES
from sparsecast.devices.target import Target
from sparsecast.errors import FeatureError, FormatError, MatrixSizeError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Machine
from sparsecast.records import Candidate


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidates for a whole matrix, and by format the reason why another one is left out."""

    candidates: tuple[Candidate, ...]
    refused: dict[str, str]


def whole_matrix(
    structure: Structure,
    target: Target,
    machine: Machine,
    fitted: Callable[[str], Sequence[str]] = lambda name: (),
) -> Choice:
    """Return the candidates for a matrix in one block, one for each format with kernels that suits it.

    The rules of `machine` choose, and matrix and vectors have to fit in its memory. `fitted` gives for a
    format the only kernels to choose from, as in `Target.kernels`.
    """
    blocks = RowBlocks.of(structure)
    candidates, refused = [], {}
    kernels = DEVICES.get(target.device).kernels
    for name in kernels.names():
        storage: Any = FORMATS.get(name)
        try:
            size = int(target.format_bytes(name, blocks)[0])
            stored = int(storage.stored_entries(blocks, **kernels.get(name).layout)[0])
            storage.refuse_unsuited(blocks, target.value_bytes, target.index_bits // 8)
            storage.refuse_padding(structure.nnz, stored, size)
            refuse_beyond_memory(name.upper(), size, structure, target, machine)
        except (FeatureError, FormatError, MatrixSizeError) as error:
            refused[name] = str(error)
        else:
            candidates.append(target.candidate(name, blocks, machine, fitted(name)))
    return Choice(tuple(candidates), refused)


def published_choice(structure: Structure, published: Sequence[Candidate], machine: Machine) -> Choice:
    """Return the candidates for a matrix on a machine of published results: all that were published.

    Left out are formats that do not take the matrix, or with which it does not fit in a GPU's memory. Nothing
    else rules there: not our padding, and not the rules of our kernels.
    """
    blocks = RowBlocks.of(structure)
    candidates, refused = [], {}
    for each in published:
        storage: Any = FORMATS.get(each.format)
        target = Target(each.device, each.dtype, each.index_bits, each.threads, is_published=True)
        size = int(storage.predicted_bytes(blocks, each.value_bytes, each.index_bytes)[0])
        try:
            if machine.gpu:
                refuse_beyond_memory(each.kernel, size, structure, target, machine)
        except MatrixSizeError as error:
            refused[each.kernel] = str(error)
        else:
            candidates.append(each)
    return Choice(tuple(candidates), refused)


def refuse_beyond_memory(
    what: str, size_bytes: int, structure: Structure, target: Target, machine: Machine
) -> None:
    """Raise MatrixSizeError if a built matrix, with x and y, exceeds the memory for products on a machine.

    `what` it is stands in the message; `size_bytes` are those of the matrix in its format, or of all blocks.
    """
    total = size_bytes + (structure.rows + structure.cols) * target.value_bytes
    if total > machine.product_memory_bytes:
        gpu = machine.gpu
        name, instead = (gpu.name, "the device cpu") if gpu else (machine.name, "a larger one")
        raise MatrixSizeError(
            f"{what} would take {total / 1e9:,.2f} GB with x and y: expected at most the "
            f"{machine.product_memory_bytes / 1e9:,.2f} GB of {name}; use another format, or {instead}"
        )
