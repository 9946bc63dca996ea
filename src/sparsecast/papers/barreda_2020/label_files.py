"""Labels of blocks: what each run of 250 entries of a matrix takes on a machine; one file for each matrix.

They are arrays of NumPy, read without pickle. A matrix is named by its specification, so that the labels of
whole groups can be left out of a fit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import StorageError
from sparsecast.machines.storage import home, write_atomically
from sparsecast.measuring.energy import DRAM, PACKAGE, TOTAL
from sparsecast.system.archives import read_arrays

Floats = NDArray[np.float32]

#: Raised when the same blocks would get other labels.
LABELS_VERSION = 4

#: Rows of the arrays of joules.
ENERGIES = (TOTAL, PACKAGE, DRAM)

#: What networks forecast: nanoseconds an entry of a block that is repeated in place, as in the paper,
#: nanojoules of it, and nanoseconds within a product.
QUANTITIES = ("time", *ENERGIES, "streaming")


@dataclass(frozen=True)
class LabelFacts:
    """What the labels of blocks are that networks learn; `quantity` is one of QUANTITIES.

    Frequency and sources are those of BlockLabels.
    """

    quantity: str
    machine: str
    dtype: str
    frequency_ghz: float | None
    frequency_source: str | None
    energy_source: str | None

    @property
    def facts(self) -> dict[str, Any]:
        return {fact.name: getattr(self, fact.name) for fact in fields(LabelFacts)}


@dataclass(frozen=True)
class BlockLabels:
    """What the blocks of one matrix take."""

    #: matrix, group: specification, and group in cross-validation.
    matrix: str
    name: str
    group: str
    dtype: str
    kernel: str  # of CSR, that the product is done with on one thread
    nnz: int
    index_bits: int
    product_s: float  # measured time of the whole product
    #: Share of the readings of blocks repeated in place that no trial at full speed of the core had.
    slow_share: float
    machine: str
    #: measured_at, version: in UTC, and by which Sparsecast.
    measured_at: str
    version: str
    #: What counted the joules, ``"modelled"`` where a model of power computed them; None where nothing did.
    energy_source: str | None
    frequency_ghz: float | None  # of the cores, where it was named
    #: ``"set"``, or ``"modelled"``: times as measured were multiplied as a lower frequency would.
    frequency_source: str | None
    features: Floats  # shape (blocks, features): as in `sparsecast.papers.barreda_2020.entry_blocks`
    #: streaming_ns, streaming_again_ns: shape (blocks,): nanoseconds per entry within a product, measured
    #: twice.
    streaming_ns: Floats
    streaming_again_ns: Floats
    #: hot_blocks, hot_ns, hot_again_ns: shape (h,): numbers of the blocks that were repeated in place, and
    #: nanoseconds per entry.
    hot_blocks: NDArray[np.int64]
    hot_ns: Floats
    hot_again_ns: Floats
    #: Shape (e,): numbers of the blocks that were repeated in place until a meter could read them; none
    #: without one.
    energy_blocks: NDArray[np.int64]
    #: energy_nj, energy_again_nj: shape (3, e): nanojoules per entry by ENERGIES, idle power included; NaN
    #: for what the meter does not count apart.
    energy_nj: Floats
    energy_again_nj: Floats

    @property
    def blocks(self) -> int:
        return len(self.streaming_ns)

    def of(self, quantity: str) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Return the blocks that have labels of a quantity, one of QUANTITIES, and the labels, twice."""
        if quantity == "time":
            return self.hot_blocks, self.hot_ns, self.hot_again_ns
        if quantity == "streaming":
            return np.arange(self.blocks), self.streaming_ns, self.streaming_again_ns
        row = ENERGIES.index(quantity)
        counted = np.isfinite(self.energy_nj[row]) & np.isfinite(self.energy_again_nj[row])
        return self.energy_blocks[counted], self.energy_nj[row, counted], self.energy_again_nj[row, counted]


def labels_folder(machine: str) -> Path:
    """Return the folder of the labels of a machine; it need not exist."""
    return home() / "blocks" / machine


def labels_path(machine: str, matrix: str, dtype: str, frequency_ghz: float | None = None) -> Path:
    """Return the file of the labels of a matrix."""
    digest = hashlib.sha256(matrix.encode()).hexdigest()[:24]
    return labels_folder(machine) / f"{digest}-{_ending(dtype, frequency_ghz)}"


def _ending(dtype: str | None, frequency_ghz: float | None) -> str:
    return f"{dtype or 'float??'}{'' if frequency_ghz is None else f'-{frequency_ghz:g}GHz'}.npz"


def keep_labels(labels: BlockLabels) -> Path:
    """Keep the labels of a matrix in the data folder, in the place of older ones."""
    path = labels_path(labels.machine, labels.matrix, labels.dtype, labels.frequency_ghz)
    arrays: dict[str, Any] = {
        name: value for name, value in vars(labels).items() if isinstance(value, np.ndarray)
    }
    facts = {name: value for name, value in vars(labels).items() if name not in arrays}
    text = json.dumps({"labels_version": LABELS_VERSION, **facts})

    def write(temporary: Path) -> None:
        with temporary.open("wb") as stream:
            np.savez_compressed(stream, facts=np.array(text), **arrays)

    write_atomically(path, write)
    return path


def read_labels(path: Path) -> BlockLabels:
    """Return the labels of a file; a StorageError refuses a damaged one, and one of another version."""
    try:
        arrays: dict[str, Any] = read_arrays(path)
        facts = msgspec.json.decode(str(arrays.pop("facts")), type=dict[str, Any])
        version = facts.pop("labels_version")
        if version != LABELS_VERSION:
            raise ValueError(f"labels of version {version}")
        known = {name: fact for name, fact in facts.items() if name in BlockLabels.__dataclass_fields__}
        return BlockLabels(**known, **arrays)  # files have had more facts
    except (OSError, KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise StorageError(
            f"{path}: expected labels of blocks of version {LABELS_VERSION}, found something else ({error}); "
            f"delete it and label again"
        ) from error


def kept_labels(
    machine: str, dtype: str | None = None, frequency_ghz: float | None = None
) -> Iterator[BlockLabels]:
    """Give the labels of a machine at one frequency in the order of their files; of one dtype, or of all."""
    return map(read_labels, sorted(labels_folder(machine).glob(f"*-{_ending(dtype, frequency_ghz)}")))


def labelled_frequencies(machine: str, dtype: str) -> list[float]:
    """Return the frequencies, in GHz, that a machine has labels at, ascending."""
    names = (path.stem.partition(f"-{dtype}-")[2] for path in labels_folder(machine).glob("*GHz.npz"))
    return sorted({float(name.removesuffix("GHz")) for name in names if name})


def sources(labels: Iterable[BlockLabels], name: str) -> list[str]:
    """Return the sources of frequencies or joules that some labels name, sorted."""
    return sorted({getattr(of_matrix, name) for of_matrix in labels} - {None})


def labels_digest(machine: str, dtype: str) -> str:
    """Return a digest of which labels there are, and when their files were written."""
    paths = sorted(labels_folder(machine).glob(f"*-{dtype}.npz"))
    facts = [(path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in paths]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
