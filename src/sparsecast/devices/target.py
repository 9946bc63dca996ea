"""Target: the device, type of values and number of threads that a question is about; its Candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices import DEVICES
from sparsecast.devices.binding import FormatKernels
from sparsecast.errors import FeatureError, FormatError, InputError, MatrixSizeError, remedy_for
from sparsecast.features.narrow_storage import narrowest
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.narrowing import LOSSY, NARROW_PARAMETERS, suited
from sparsecast.machines.machine import Machine
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.values import require_imaginary
from sparsecast.records import DTYPES, VALUE_BYTES, Candidate, Parameters, Record

#: Parameters of full storage.
FULL: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Target:
    """What all candidates of one question share; `index_bits` are 32 or 64, as in the matrix.

    `is_published` marks a question about published results, whose device may be unknown here. A product of
    several `vectors` is Y = A X. With `values` ``"float32"``, values of double precision may be rounded to
    it; sums are of `dtype`. `libraries` are other libraries that are candidates, too.
    """

    device: str
    dtype: str
    index_bits: int
    threads: int
    is_published: bool = False
    vectors: int = 1
    values: str | None = None
    libraries: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        dtypes = DTYPES if self.is_published else DEVICES.get(self.device).dtypes
        if self.dtype not in dtypes:
            raise InputError(
                f"dtype '{self.dtype}' on {self.device}: expected one of {', '.join(dtypes)}; "
                f"{remedy_for(self.dtype, dtypes, 'name one of them')}"
            )
        takes_several = not self.is_published and DEVICES.get(self.device).shares_host
        if self.vectors < 1 or (self.vectors > 1 and not takes_several):
            expected = "at least 1" if takes_several else "1"
            raise InputError(f"vectors {self.vectors} on {self.device}: expected {expected}; name that")
        takes_rounded = takes_several and self.dtype in ("float64", "complex128")
        if self.values is not None and not (self.values == "float32" and takes_rounded):
            raise InputError(
                f"values '{self.values}' of {self.dtype} on {self.device}: expected float32, of float64 or "
                f"complex128 on a processor; leave it out"
            )

    @classmethod
    def of(cls, A: Any, machine: Machine, threads: int | None, dtype: str | None) -> Target:
        """Return what all candidates of a question about a sparse matrix or Structure share, as `on` does."""
        if isinstance(A, Structure):
            index_bits = 32 if max(A.nnz, A.rows, A.cols) < 2**31 else 64
            return cls.on(machine, "float64" if dtype is None else dtype, threads, index_bits)
        matrix = Problem.of(A).matrix
        # SciPy counts more than 2**31 - 1 entries with 64 bits, the columns may still have 32.
        index_bytes = max(matrix.indptr.itemsize, matrix.indices.itemsize)
        target = cls.on(machine, matrix.dtype.name if dtype is None else dtype, threads, 8 * index_bytes)
        require_imaginary(matrix.dtype, target.dtype, f"a {matrix.dtype} matrix")
        return target

    @classmethod
    def on(cls, machine: Machine, dtype: str, threads: int | None, index_bits: int = 32) -> Target:
        """Return the target of a machine: all of its threads where none are named.

        An InputError says that it has not as many, or that its results are published, without their threads.
        """
        if machine.published_as is None:
            count = DEVICES.get(machine.device).threads(machine, threads)
            return cls(machine.device, dtype, index_bits, count)
        if threads not in (None, 1):
            raise InputError(
                f"threads {threads} of the published results {machine.name}: expected none, because they do "
                f"not say how many they had; leave --threads out"
            )
        return cls(machine.device, dtype, index_bits, 1, is_published=True)

    @property
    def value_bytes(self) -> int:
        return VALUE_BYTES[self.dtype]

    @property
    def open_formats(self) -> list[str]:
        """The formats with kernels, and the libraries that are asked for."""
        return [*DEVICES.get(self.device).kernels.names(), *self.libraries]

    def asks_for(self, record: Record) -> bool:
        """Tell whether a Record is of a format of ours or of a library asked for, with its threads."""
        name = record.candidate.format
        is_asked = name in self.libraries or name not in LIBRARIES
        return is_asked and record.candidate.threads == self._threads_of(name)

    def _threads_of(self, format_name: str) -> int:
        return 1 if FORMATS.get(format_name).is_serial else self.threads

    def refuse_unsuited(self, format_name: str, blocks: RowBlocks) -> None:
        """Raise a FormatError if a format does not suit a matrix, or is known to be slower than CSR."""
        storage = FORMATS.get(format_name)
        storage.refuse_types(self.dtype, self.index_bits, self.vectors)
        storage.refuse_unsuited(blocks, self.value_bytes, self.index_bits // 8)

    def kernels(
        self, format_name: str, blocks: RowBlocks, machine: Machine, fitted: Sequence[str] = ()
    ) -> NDArray[np.str_]:
        """Return the kernel for each block, chosen by the rule of its format for `machine`.

        If `fitted` names kernels, the rule is limited to them; the first of them replaces any other.
        """
        rule = self._rule(format_name)
        chosen = np.array(rule.variants)[rule.choose(blocks, machine, self.dtype)]
        return np.where(np.isin(chosen, fitted), chosen, fitted[0]) if len(fitted) else chosen

    def candidate(
        self,
        format_name: str,
        blocks: RowBlocks,
        machine: Machine,
        fitted: Sequence[str] = (),
        narrow: Mapping[str, Any] = FULL,
    ) -> Candidate:
        """Return the Candidate of a format for the first of `blocks`, with its kernel of `kernels`.

        `narrow` are parameters of `narrow`; by default entries are stored in full.
        """
        kernel = str(self.kernels(format_name, blocks, machine, fitted)[0])
        parameters = Parameters({**self._rule(format_name).layout, **narrow})
        setting = self.device, self.dtype, self.index_bits, self._threads_of(format_name)
        return Candidate(format_name, kernel, *setting, parameters, self.vectors)

    def narrow(self, format_name: str, matrix: Structure) -> dict[str, Any]:
        """Return the narrowest storage of a matrix in a format, and of its aligned row blocks.

        Empty where entries are to be stored in full: where nothing else holds, or is known to hold, or where
        the kernels read nothing else. With `values`, and nothing else, it may lose digits.
        """
        if not self._rule(format_name).reads_narrow:
            return {}
        holds = suited(narrowest(matrix), self.dtype)
        if self.values and matrix.nnz:
            holds.setdefault("values", LOSSY)
        return FORMATS.get(format_name).narrowed(holds, RowBlocks.of(matrix)) if holds else {}

    def format_bytes(
        self, format_name: str, blocks: RowBlocks, parameters: Mapping[str, Any] = FULL
    ) -> NDArray[np.int64]:
        """Return the bytes of each block in a format, in the layout of the device and with `parameters`."""
        storage: Any = FORMATS.get(format_name)
        widths, layout = (self.value_bytes, self.index_bits // 8), self._rule(format_name).layout
        return np.asarray(storage.predicted_bytes(blocks, *widths, **{**layout, **parameters}))

    def _rule(self, format_name: str) -> FormatKernels:
        return DEVICES.get(self.device).kernels.get(format_name)


def memory_bytes(candidate: Candidate, blocks: RowBlocks) -> tuple[int, int] | tuple[None, None]:
    """Return the memory of the first block beside the matrix: of its format, and at most while it is built.

    A GPU has all arrays of the format, also those that are the matrix' own on the host. None of another
    library: what that makes of the matrix is unknown.
    """
    storage: Any = FORMATS.get(candidate.format)
    if storage.is_library:
        return None, None
    sizes = blocks, candidate.value_bytes, candidate.index_bytes
    built, building = storage.memory_bytes(*sizes, **candidate.parameters)
    is_host = candidate.device not in DEVICES or DEVICES.get(candidate.device).shares_host
    built = built if is_host else storage.predicted_bytes(*sizes, **candidate.parameters)
    return int(built[0]), int(building[0])


def passes(candidate: Candidate) -> int:
    """Return how often a product reads the matrix: once, but for several vectors."""
    if candidate.vectors == 1:
        return 1
    return DEVICES.get(candidate.device).kernels.get(candidate.format).passes(candidate.vectors)


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
    """Return the candidates for a matrix in one block, for each format with kernels that suits it.

    Entries are stored in full, and in a second candidate as narrow as `Target.narrow` says, if at all.

    The rules of `machine` choose, and matrix and vectors have to fit in its memory. `fitted` gives for a
    format the only kernels to choose from, as in `Target.kernels`.
    """
    blocks = RowBlocks.of(structure)
    candidates, refused = [], {}
    kernels = DEVICES.get(target.device).kernels
    for name in target.open_formats:
        storage: Any = FORMATS.get(name)
        try:
            size = int(target.format_bytes(name, blocks)[0])
            stored = int(storage.stored_entries(blocks, **kernels.get(name).layout)[0])
            target.refuse_unsuited(name, blocks)
            storage.refuse_padding(structure.nnz, stored, size)
            refuse_beyond_memory(name.upper(), size, structure, target, machine)
        except (FeatureError, FormatError, MatrixSizeError) as error:
            refused[name] = str(error)
        else:
            of_format = name, blocks, machine, fitted(name)
            candidates.append(target.candidate(*of_format))
            if narrow := target.narrow(name, structure):
                candidates.append(target.candidate(*of_format, narrow))
    return Choice(tuple(candidates), refused)


def believed(structure: Structure, candidates: Iterable[Candidate]) -> list[str]:
    """Return the groups by which a sample says that these candidates can be built, and that are unproven."""
    groups = {"narrow_storage" for each in candidates if NARROW_PARAMETERS & set(each.parameters)}
    groups |= {name for each in candidates for name in FORMATS.get(each.format).relies_on}
    return sorted(groups & set(structure.unproven))


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
    total = size_bytes + (structure.rows + structure.cols) * target.vectors * target.value_bytes
    if total > machine.product_memory_bytes:
        gpu = machine.gpu
        name, instead = (gpu.name, "the device cpu") if gpu else (machine.name, "a larger one")
        raise MatrixSizeError(
            f"{what} would take {total / 1e9:,.2f} GB with x and y: expected at most the "
            f"{machine.product_memory_bytes / 1e9:,.2f} GB of {name}; use another format, or {instead}"
        )
