"""Labelled blocks that networks learn from: those of this machine, or the authors'.

The authors' are HDF5, one file for each matrix and frequency (Zenodo record 3956057). Their driver writes MB,
the column of each entry; B_250, E_250, EPKG_250 and EDRAM_250, nanoseconds and nanojoules of an entry of each
block, the shorter last one too; FREC, kilohertz; HEAD, columns, rows and entries. Labels are taken as they
are: times are counts of a clock of constant rate, divided by FREC.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparsecast.devices import machine_of
from sparsecast.errors import InputError, ProfileError, remedy_for
from sparsecast.machines.machine import PROCESSOR
from sparsecast.papers.barreda_2020.features.entry_blocks import BLOCK_ENTRIES, evenly_spread
from sparsecast.papers.barreda_2020.label_files import (
    ENERGIES,
    QUANTITIES,
    LabelFacts,
    kept_labels,
    labelled_frequencies,
)
from sparsecast.papers.barreda_2020.networks import required
from sparsecast.papers.barreda_2020.networks.architectures import INPUTS
from sparsecast.papers.barreda_2020.networks.dataset import BlockDataset, joined, labelled_blocks

#: Arrays of the files by quantity.
_ARRAYS = {"time": "B", "total": "E", "package": "EPKG", "dram": "EDRAM"}

#: Whose they are.
MACHINE = "xeon-e5-2630-barreda"


@dataclass(frozen=True)
class LabelSet(LabelFacts):
    """Blocks with labels of one quantity; our networks take those alone whose ends of rows are known."""

    blocks: BlockDataset
    sees_rows: bool = True


def refuse_quantity(quantity: str) -> None:
    if quantity not in QUANTITIES:
        remedy = remedy_for(quantity, QUANTITIES, "name one")
        raise InputError(f"labels '{quantity}': expected one of {', '.join(QUANTITIES)}; {remedy}")


def label_set(
    quantity: str, dtype: str = "float64", most: int = 1024, frequency_ghz: float | None = None
) -> LabelSet:
    """Return the labelled blocks of this machine, made again from the matrices' specifications.

    At most `most` blocks of one matrix are taken, evenly spread. The frequency is one that `label
    --frequencies` named; by default that of the machine.
    """
    refuse_quantity(quantity)
    machine = machine_of(PROCESSOR)
    parts, used = [], []
    for labels in kept_labels(machine.name, dtype, frequency_ghz):
        blocks = labelled_blocks(labels, quantity, most)
        if blocks is not None:
            parts.append(blocks)
            used.append(labels)
    if not parts:
        at = "" if frequency_ghz is None else f" at {frequency_ghz:g} GHz"
        known = ", ".join(f"{ghz:g}" for ghz in labelled_frequencies(machine.name, dtype)) or "none"
        where = " with a meter" if quantity in ENERGIES else ""
        raise ProfileError(
            f"no {quantity} labels of blocks of {dtype} values{at} on {machine.name}: expected some, GHz "
            f"with labels: {known}; run sparsecast label{where}"
        )
    set_by, counted_by = (
        ", ".join(sorted({getattr(labels, name) for labels in used} - {None})) or None
        for name in ("frequency_source", "energy_source")
    )
    energy_source = counted_by if quantity in ENERGIES else None
    return LabelSet(quantity, machine.name, dtype, frequency_ghz, set_by, energy_source, joined(parts))


def published_labels(folder: Path, quantity: str, most: int = 1024) -> LabelSet:
    """Return the labels of all files `output_MATRIX_KILOHERTZ.h5` of a folder, which are of one frequency.

    At most `most` blocks of one matrix are taken, evenly spread.
    """
    refuse_quantity(quantity)
    if quantity not in _ARRAYS:
        raise InputError(f"published labels '{quantity}': expected {', '.join(_ARRAYS)}; name one")
    paths = sorted(folder.glob("*.h5"))
    if not paths:
        raise InputError(f"{folder}: expected files MATRIX.h5 of published labels, found none; name another")
    parts, frequencies = [], set()
    for path in paths:
        blocks, kilohertz = _read(path, _ARRAYS[quantity], most)
        parts.append(blocks)
        frequencies.add(kilohertz)
    if len(frequencies) > 1:
        raise InputError(
            f"{folder} has labels at {len(frequencies)} frequencies: expected one; name a folder of one"
        )
    ghz = frequencies.pop() / 1e6
    source = None if quantity == "time" else "rapl"
    return LabelSet(quantity, MACHINE, "float64", ghz, "set", source, joined(parts), sees_rows=False)


def _read(path: Path, name: str, most: int) -> tuple[BlockDataset, int]:
    h5py: Any = required("h5py")
    try:
        with h5py.File(path) as file:
            columns, frequency = np.asarray(file["MB"]), int(np.ravel(file["FREC"])[0])
            labels = np.asarray(file[f"{name}_{BLOCK_ENTRIES}"], dtype=np.float32)
    except (OSError, KeyError, ValueError, TypeError, IndexError) as error:
        raise InputError(
            f"{path} cannot be read as published labels ({error}): expected HDF5 with "
            f"MB, FREC and {name}_{BLOCK_ENTRIES}; name others"
        ) from error
    whole = len(columns) // BLOCK_ENTRIES if columns.ndim == 1 else 0
    if columns.dtype.kind not in "iu" or labels.ndim != 1 or not 0 < whole <= len(labels):
        raise InputError(
            f"{path} has {columns.shape} {columns.dtype} columns and {labels.shape} labels: expected "
            f"integers, and a label for each {BLOCK_ENTRIES}; name others"
        )
    if not (np.isfinite(labels[:whole]).all() and (labels[:whole] > 0).all()):
        raise InputError(f"{path} has a label that is not above 0: expected one for each block; leave it out")
    chosen = evenly_spread(whole, most)
    cut = columns[: whole * BLOCK_ENTRIES].reshape(whole, BLOCK_ENTRIES)[chosen].astype(float)
    inputs = np.zeros((len(chosen), 2, INPUTS), dtype=np.float32)
    inputs[:, 0] = np.log(np.abs(np.diff(cut, axis=1)) + 1)
    matrix = path.stem.removeprefix("output_").removesuffix(f"_{frequency}")
    unseen = np.zeros((len(chosen), 0), dtype=np.float32)
    unrepeated, numbers = (
        np.full(len(chosen), np.nan, dtype=np.float32),
        np.zeros(len(chosen), dtype=np.int64),
    )
    return BlockDataset(inputs, unseen, labels[chosen], unrepeated, numbers, (matrix,), (matrix,)), frequency
