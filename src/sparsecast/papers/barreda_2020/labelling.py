"""Labelling: what the blocks of matrices take on this machine, kept for the networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

import numpy as np

from sparsecast.api.campaigns import Campaign, Turn
from sparsecast.api.executing import held_frequency, measure_here
from sparsecast.api.matrices import left_out, named_problems
from sparsecast.devices import DEVICES, machine_of
from sparsecast.devices.binding import prepared
from sparsecast.devices.product_timer import right_hand_side
from sparsecast.devices.target import Target
from sparsecast.errors import DeviceError, InputError, StorageError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import PROCESSOR, Machine
from sparsecast.machines.profile import find_profile
from sparsecast.machines.storage import ensure_writable
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.shards import Shard
from sparsecast.measuring.core_speed import CoreSpeed, reading, waits
from sparsecast.measuring.energy import MODELLED, TOTAL, Meter, is_modelled
from sparsecast.papers.barreda_2020.block_times import (
    DEFAULT_LABEL_EFFORT,
    HotBlocks,
    LabelEffort,
    streaming_timer,
)
from sparsecast.papers.barreda_2020.entry_blocks import (
    BLOCK_ENTRIES,
    describe_blocks,
    evenly_spread,
    whole_blocks,
)
from sparsecast.papers.barreda_2020.label_files import (
    QUANTITIES,
    BlockLabels,
    keep_labels,
    labels_folder,
    labels_path,
    read_labels,
    sources,
)
from sparsecast.papers.barreda_2020.modelled_meter import ModelledMeter
from sparsecast.records import Candidate
from sparsecast.results.measurement import Pending
from sparsecast.system.tabular import Column, Columns, keys
from sparsecast.system.texts import counted
from sparsecast.system.version import VERSION

#: Called after each matrix with its name, and what became of it in words.
OnMatrix = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class LabelFrequency:
    """The frequency that labels are of, as they name it.

    `slowdown` is the factor of the times: above 1 where the frequency is modelled.
    """

    ghz: float | None = None
    source: str | None = None
    slowdown: float = 1.0

    @property
    def set_hz(self) -> float | None:
        """What the cores are to be held at; None where nothing is set."""
        return 1e9 * self.ghz if self.ghz is not None and self.source == "set" else None


OWN_FREQUENCY = LabelFrequency()


@dataclass
class Labelling:
    """What a run of `label` did.

    `known` counts matrices that had labels already, at each frequency, and `left` those that the budget left
    out, or a stop from the keyboard (`is_stopped`). `refused` has a reason by name. Of `used_s` seconds,
    `labelling_s` were measurements; the rest read and made the matrices.
    """

    labelled: list[BlockLabels] = field(default_factory=list)
    known: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    left: int = 0
    is_stopped: bool = False
    used_s: float = 0.0
    labelling_s: float = 0.0

    @property
    def blocks(self) -> int:
        return sum(labels.blocks for labels in self.labelled)

    @property
    def blocks_per_s(self) -> float | None:
        return self.blocks / self.used_s if self.labelled else None

    @property
    def repeat_noise(self) -> dict[str, float | None] | None:
        """Median relative difference of labels that were measured twice, by quantity; None without labels."""
        if not self.labelled:
            return None
        noise: dict[str, float | None] = {}
        for quantity in QUANTITIES:
            pairs = [labels.of(quantity) for labels in self.labelled]
            differences = np.abs(np.concatenate([again / first for _, first, again in pairs]) - 1)
            noise[quantity] = float(np.median(differences)) if len(differences) else None
        return noise

    def sentence(self) -> str:
        """Return in words what was done."""
        noise, rate = self.repeat_noise, self.blocks_per_s
        text = f"{counted(len(self.labelled), 'matrix')} labelled, {counted(self.blocks, 'block')}; "
        text += f"{self.known:,} had labels"
        if self.left:
            text += f"; {self.left:,} remain, and the next run begins with them"
        if noise is None or rate is None:
            return f"{text}."
        text += (
            f". {self.used_s:.0f} s, {self.labelling_s:.0f} s of them measuring: {rate:,.0f} blocks a "
            f"second, {3600 * rate / 1e6:.1f} million an hour. Measured twice, a block differs by "
            f"{noise['streaming']:.1%} within a product and by {noise['time']:.1%} where it is repeated in "
            f"place; {fmean(labels.slow_share for labels in self.labelled):.1%} of them never at full speed."
        )
        if MODELLED in sources(self.labelled, "frequency_source"):
            text += " Their frequencies cannot be set here: they are modelled."
        if noise[TOTAL] is None:
            return f"{text} No meter counted their joules."
        blocks = sum(len(labels.energy_blocks) for labels in self.labelled)
        meters, differ = sources(self.labelled, "energy_source"), f"they differ by {noise[TOTAL]:.1%}"
        return f"{text} Joules of {counted(blocks, 'block')} by {', '.join(meters)}: counted twice {differ}."


#: The document of the command.
DOCUMENTS: dict[str, Columns] = {
    "label": (
        Column("matrices", value=lambda done: len(done.labelled)),
        *keys("blocks", "known", "refused", "left", "used_s", "labelling_s", "blocks_per_s"),
        Column(
            "repeat_noise",
            about="median relative difference of labels that were measured twice, by quantity",
        ),
        Column(
            "energy_sources",
            value=lambda done: sources(done.labelled, "energy_source"),
            about='what counted joules; "modelled" counts nothing',
        ),
        Column(
            "frequency_sources",
            value=lambda done: sources(done.labelled, "frequency_source"),
            about='"set" or "modelled"',
        ),
    )
}


def label(
    matrices: Sequence[Any] = (),
    *,
    dtype: str | None = None,
    budget_s: float | None = None,
    effort: LabelEffort = DEFAULT_LABEL_EFFORT,
    meter: Meter | None = None,
    frequencies_ghz: Sequence[float] = (),
    shard: str | Shard | None = None,
    on_matrix: OnMatrix = lambda name, what: None,
) -> Labelling:
    """Measure what the blocks of matrices take on one core of this machine, and keep it.

    The product of each matrix is measured too, as `measure` does, and its Record is kept. A matrix that has
    labels is not measured again, so that a run that was stopped goes on where it was; it is where a meter is
    there now that could count their joules.

    Parameters
    ----------
    matrices : sequence of paths, folders of matrix files, gallery specifications or sparse matrices
        By default those that this machine's profile has Records of, and that can be made again.
    dtype : str, optional
        Of the values: ``"float64"`` or ``"float32"``; those of each matrix by default.
    budget_s : float, optional
        Seconds after which no matrix is begun.
    meter : Meter, optional
        By default what the processor has.
    frequencies_ghz : sequence of float
        Of the cores, set one after the other. Where they cannot be set and the meter is modelled, they are
        modelled, too: what is measured counts as the highest, and times grow as frequencies fall.
    shard : str or Shard, optional
        The part of the matrices to label, as in `evaluate`.
    """
    if dtype not in (None, "float64", "float32"):
        raise InputError(f"labels of {dtype} values: expected float64 or float32; name one of them")
    machine, start_s = machine_of(PROCESSOR), perf_counter()
    ensure_writable(labels_folder(machine.name))
    meter = meter or DEVICES.get(PROCESSOR).meter()
    frequencies = _frequencies(frequencies_ghz, meter)
    problems, refused = _problems(matrices, shard)
    done = Labelling(refused=refused, left=len(problems))

    def labelled(name: str, problem: Problem) -> None:
        """Label one matrix at each frequency, unless it has labels."""
        of_dtype = dtype or problem.matrix.dtype.name
        for frequency in frequencies:
            path = labels_path(machine.name, problem.specification, of_dtype, frequency.ghz)
            if path.exists() and not _is_to_measure_again(path, meter):
                done.known += 1
                continue
            begin_s = perf_counter()
            if isinstance(meter, ModelledMeter):
                meter.slowdown = frequency.slowdown
            with held_frequency(frequency.set_hz):
                labels = label_blocks(problem, machine, of_dtype, effort, meter, frequency)
            if frequency.ghz is None:
                # The model learns from labels of matrices that it has Records of.
                candidate = labelled_way(problem, machine, of_dtype)
                measure_here(problem, [candidate], keeps=True, reads_energy=False)
            done.labelling_s += perf_counter() - begin_s
            keep_labels(labels)
            done.labelled.append(labels)

    def turns() -> Iterator[tuple[str, Turn]]:
        for name in problems:
            if budget_s is not None and perf_counter() - start_s >= budget_s:
                return
            before = done.blocks
            yield name, labelled
            done.left -= 1
            blocks = done.blocks - before
            what = "left out" if name in refused else "has labels"
            on_matrix(name, counted(blocks, "block") if blocks else what)

    done.is_stopped = Campaign(machine, problems, refused).run(turns(), len(problems))
    done.used_s = perf_counter() - start_s
    return done


def _frequencies(ghz: Sequence[float], meter: Meter | None) -> list[LabelFrequency]:
    if not ghz:
        return [OWN_FREQUENCY]
    frequencies = [LabelFrequency(number, "set") for number in ghz]
    try:
        for frequency in frequencies:
            with held_frequency(frequency.set_hz):
                pass
    except DeviceError:
        if not is_modelled(meter):
            raise
        return [LabelFrequency(number, MODELLED, max(ghz) / number) for number in ghz]
    return frequencies


def _is_to_measure_again(path: Path, meter: Meter | None) -> bool:
    """Tell whether a file of labels cannot be read, or a meter would add joules that are counted, or any."""
    try:
        source = read_labels(path).energy_source
    except StorageError:  # of another version, which makes room
        return True
    if meter is None:
        return False
    return source is None or (source == MODELLED and not is_modelled(meter))


def _problems(
    matrices: Sequence[Any], shard: str | Shard | None
) -> tuple[dict[str, Problem], dict[str, str]]:
    """Return the matrices; by default those that CSR was measured with here, and that can be made again."""
    if matrices:
        return named_problems(matrices, shard)
    records = find_profile(here=machine_of(PROCESSOR)).select(format="csr")
    problems = map(Problem.rebuilt, sorted({record.matrix for record in records}))
    return named_problems([problem for problem in problems if problem is not None], shard)


def pending_labels(
    matrices: Sequence[Any] = (), dtype: str | None = None, shard: str | Shard | None = None
) -> Pending:
    """Return the matrices that `label` would label, and how many files of labels each has already."""
    rows, machine = [], machine_of(PROCESSOR)
    problems, refused = _problems(matrices, shard)
    for name, problem in problems.items():
        with left_out(name, refused):
            path = labels_path(machine.name, problem.specification, dtype or problem.matrix.dtype.name)
            rows.append({"matrix": name, "kept": int(path.exists())})
    return Pending(str(Shard.of(shard)) if shard else None, rows, refused)


def label_blocks(
    problem: Problem,
    machine: Machine,
    dtype: str | None = None,
    effort: LabelEffort = DEFAULT_LABEL_EFFORT,
    meter: Meter | None = None,
    frequency: LabelFrequency = OWN_FREQUENCY,
) -> BlockLabels:
    """Measure what the blocks of a matrix take on one core of this machine, everything twice.

    The values are of `dtype`, by default that of the matrix; `meter` counts the joules of blocks, which have
    none without one, and `frequency` is that of the cores now.
    """
    A = problem.matrix
    dtype = A.dtype.name if dtype is None else dtype
    if np.dtype(dtype).kind != "f":
        raise InputError(
            f"{problem.name} with {dtype} values: expected real ones, which networks forecast; leave it out"
        )
    if A.nnz < BLOCK_ENTRIES:
        raise InputError(
            f"{problem.name} has {A.nnz} entries: expected at least one block of {BLOCK_ENTRIES}; leave it "
            f"out"
        )
    candidate = labelled_way(problem, machine, dtype)
    A = prepared(A, dtype, candidate.index_bits)
    blocks = whole_blocks(A.nnz)
    slowdown = frequency.slowdown
    x = right_hand_side(A.shape[1], dtype)
    streaming = streaming_timer(A, candidate.kernel, x, effort)
    # What full speed is at another frequency, the monitor of the process does not know.
    speed = DEVICES.get(PROCESSOR).core_speed(1)
    speed = CoreSpeed(reading(1), waits_s=waits(1)) if speed and frequency.set_hz else speed
    hot = HotBlocks(A, evenly_spread(blocks, effort.hot_blocks), x, effort, speed)
    (streaming_ns, product_s), hot_ns = streaming(), hot.measure()
    (streaming_again_ns, _), hot_again_ns = streaming(), hot.measure()
    energy_blocks, energy_nj = hot.energies(hot_ns, meter)
    return BlockLabels(
        matrix=problem.specification,
        name=problem.name,
        group=problem.group,
        dtype=dtype,
        kernel=candidate.kernel,
        nnz=int(A.nnz),
        index_bits=candidate.index_bits,
        product_s=slowdown * product_s,
        slow_share=hot.slow / hot.tried,
        machine=machine.name,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        version=VERSION,
        energy_source=meter.source if meter and len(energy_blocks) else None,
        frequency_ghz=frequency.ghz,
        frequency_source=frequency.source,
        features=describe_blocks(A.indptr, A.indices, np.arange(blocks)).astype(np.float32),
        streaming_ns=(slowdown * streaming_ns).astype(np.float32),
        streaming_again_ns=(slowdown * streaming_again_ns).astype(np.float32),
        hot_blocks=hot.blocks,
        hot_ns=(slowdown * hot_ns).astype(np.float32),
        hot_again_ns=(slowdown * hot_again_ns).astype(np.float32),
        energy_blocks=energy_blocks,
        energy_nj=energy_nj[0],
        energy_again_nj=energy_nj[1],
    )


def labelled_way(problem: Problem, machine: Machine, dtype: str) -> Candidate:
    """Return the Candidate whose products are labelled: CSR on one thread, with the kernel of the rule."""
    A = problem.matrix
    bits = 8 * max(A.indptr.itemsize, A.indices.itemsize)
    blocks = RowBlocks.of(problem.sampled_structure)
    return Target(PROCESSOR, dtype, bits, 1).candidate("csr", blocks, machine)
