"""Fixtures of the tests of models: Records from a real machine, and Records made up from a law of time."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.features import usual_groups
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import MatrixEntry, Profile
from sparsecast.matrices.problem import group_of
from sparsecast.matrices.suites import SUITES, SuiteMatrix
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet
from sparsecast.papers.barreda_2020 import label_files as block_labels
from sparsecast.papers.barreda_2020.entry_blocks import BLOCK_FEATURES, whole_blocks
from sparsecast.papers.barreda_2020.label_files import BlockLabels, keep_labels
from sparsecast.records import Bandwidth, Candidate, Conditions, Record

from ..conftest import left_packed

#: Of a read of small and of large arrays, and of a reference product in the second cache: twice as long.
BANDWIDTHS = tuple(
    Bandwidth("read", "cpu", 1, size, size / speed, 0.01, "2026-01-01T00:00:00+00:00", "0")
    for size, speed in ((1 << 14, 6e10), (1 << 22, 4e10), (1 << 28, 1e10))
)
CONDITIONS = Conditions(references_s={"L2": 2 * (1 << 18) / 6e10})

#: Of the matrices of papers that tests make up times of.
MOST_ENTRIES = 200_000


def whole_structure(A: csr_array) -> Structure:
    """Return the Structure of a matrix with the groups that some model asks for."""
    return structure(A, groups=[*usual_groups(), "entry_blocks"])


@pytest.fixture(scope="session")
def labelled(recorded: Profile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with made-up labels of blocks of the recorded matrices, with which `blocks` learns."""
    folder = tmp_path_factory.mktemp("labelled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_labels, "home", lambda: folder)
        chosen = {(r.matrix, r.candidate.dtype): r for r in recorded.select(format="csr")}
        for record in chosen.values():
            keep_labels(labels_of(record, recorded))
    return folder


@pytest.fixture(scope="module", autouse=True)
def finds_labels(labelled: Path) -> Iterator[None]:
    """Have the tests of one module find these labels, whatever data folder each has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_labels, "home", lambda: labelled)
        yield


def labels_of(record: Record, profile: Profile) -> BlockLabels:
    """Return labels of a matrix whose blocks take what its Record says, each a little else."""
    entry = profile.matrices[record.matrix]
    blocks = whole_blocks(record.nnz)
    features = np.zeros((blocks, len(BLOCK_FEATURES)), dtype=np.float32)
    features[:, 0] = np.linspace(0.0, 1.0, blocks)
    ns = (1e9 * record.time_s / record.nnz * np.linspace(0.9, 1.1, blocks)).astype(np.float32)
    return BlockLabels(
        matrix=record.matrix,
        name=entry.name,
        group=group_of(record.matrix),
        dtype=record.candidate.dtype,
        kernel=record.candidate.kernel,
        nnz=record.nnz,
        index_bits=32,
        product_s=record.time_s,
        slow_share=0.0,
        machine=profile.machine.name,
        measured_at="2026-01-01T00:00:00+00:00",
        version="0",
        energy_source=None,
        frequency_ghz=None,
        frequency_source=None,
        features=features,
        streaming_ns=ns,
        streaming_again_ns=ns,
        hot_blocks=np.zeros(0, dtype=np.int64),
        hot_ns=ns[:0],
        hot_again_ns=ns[:0],
        energy_blocks=np.zeros(0, dtype=np.int64),
        energy_nj=np.zeros((3, 0), dtype=np.float32),
        energy_again_nj=np.zeros((3, 0), dtype=np.float32),
    )


@pytest.fixture(scope="session")
def of_lengths() -> Callable[[Sequence[int]], Structure]:
    """Give the Structure of a matrix with these row lengths, counted once: all models ask for the same."""

    @functools.cache
    def made(key: bytes) -> Structure:
        lengths = np.frombuffer(key, dtype=np.int64)
        return whole_structure(left_packed(lengths, max(int(lengths.max(initial=0)), len(lengths), 1)))

    return lambda lengths: made(np.asarray(lengths, dtype=np.int64).tobytes())


@pytest.fixture(scope="session")
def training(recorded: Profile) -> TrainingSet:
    """The recorded products in double precision with one thread."""
    return TrainingSet.of(recorded, recorded.select(dtype="float64", threads=1))


@pytest.fixture(scope="session")
def known(recorded: Profile) -> dict[str, Structure]:
    """The Structures of all matrices that Records here name; `make_record` adds its own."""
    return {name: entry.structure for name, entry in recorded.matrices.items()}


@pytest.fixture(scope="session")
def train(recorded: Profile, known: dict[str, Structure]) -> Callable[..., TrainingSet]:
    """Give the training set of Records, by default of the recorded machine."""

    def make(records: Sequence[Record], machine: Machine = recorded.machine) -> TrainingSet:
        entries = {record.matrix: MatrixEntry(record.matrix, "", known[record.matrix]) for record in records}
        return TrainingSet(machine, tuple(records), entries, BANDWIDTHS)

    return make


@pytest.fixture(scope="session")
def make_record(recorded: Profile, known: dict[str, Structure]) -> Callable[..., Record]:
    """Give a Record of a format, a Structure, a suite and a time; the rest is said, or as in a real one."""
    names: dict[Structure, str] = {}

    def make(
        format_name: str,
        found: Structure,
        time_s: float,
        suite: str,
        threads: int = 1,
        convert_s: float = 0.0,
        **fields: str,
    ) -> Record:
        template = recorded.records[0]
        name = names.setdefault(found, f"made up {len(names)}")
        known[name] = found
        usual = {"kernel": "made up", "dtype": "float64", **fields}
        candidate = dataclasses.replace(template.candidate, format=format_name, threads=threads, **usual)
        return dataclasses.replace(
            template,
            candidate=candidate,
            nnz=found.nnz,
            matrix=name,
            suite=suite,
            time_s=time_s,
            convert_s=convert_s,
        )

    return make


@pytest.fixture(scope="session")
def profile_of(recorded: Profile, known: dict[str, Structure]) -> Callable[[type[Model]], Profile]:
    """Give the recorded profile, and for a model of its paper's own matrices Records of some of them.

    The recorded profile is older than those models: the times of the added Records follow a law, and
    bandwidths and times of reference products are made up.
    """
    seen = [
        dataclasses.replace(
            record, conditions=CONDITIONS, energy_j=20.0 * record.time_s, energy_source="rapl"
        )
        for record in recorded.records
    ]
    whole = recorded.with_records(seen, recorded.matrices.values()).with_bandwidths(BANDWIDTHS)
    kernels = DEVICES.get("cpu").kernels
    suites = {name: SUITES.get(name)().whole(recorded.machine, 1) for name in ("guo", "wang", "hossain")}

    @functools.cache
    def with_suite(name: str) -> Profile:
        chosen = [each for each in suites[name][:48] if each.entries <= MOST_ENTRIES]
        entries = [
            MatrixEntry(each.problem.specification, each.name, each.problem.structure) for each in chosen
        ]
        known.update((entry.specification, entry.structure) for entry in entries)
        return whole.with_records([record for each in chosen for record in records_of(each)], entries)

    def records_of(each: SuiteMatrix) -> list[Record]:
        found = each.problem.structure
        # On no straight line, so that fits of different kinds differ.
        time_s = (1e-6 + 1e-9 * found.rows + 5e-10 * found.nnz) * (1 + 0.1 * (found.nnz % 7))
        of_matrix = {"matrix": each.problem.specification, "nnz": found.nnz, "suite": each.suite}
        return [
            dataclasses.replace(
                template,
                candidate=candidate,
                kernel_version=kernels.get(candidate.format).version,
                time_s=time_s,
                **of_matrix,
            )
            for template in (
                recorded.select(format="csr", dtype=dtype)[0] for dtype in ("float64", "float32")
            )
            for candidate in (dataclasses.replace(template.candidate, format=name) for name in each.formats)
        ]

    return lambda model: with_suite(model.suite) if model.suite else whole


@pytest.fixture(scope="session")
def way() -> Callable[..., Candidate]:
    """Give a Candidate by its format; what else a test does not say is usual."""

    def make(format_name: str, kernel: str = "made up", **fields: str | int) -> Candidate:
        usual = Candidate(format_name, kernel, "cpu", "float64", 32, 1)
        return dataclasses.replace(usual, **fields)

    return make


@pytest.fixture(scope="session")
def seconds(way: Callable[..., Candidate]) -> Callable[..., float]:
    """Give the forecast of a product with a whole matrix, asked by a Candidate or the name of a format."""

    def ask(model: Model, candidate: Candidate | str, found: Structure) -> float:
        asked = way(candidate) if isinstance(candidate, str) else candidate
        return float(model.values(asked, RowBlocks.of(found))[0])

    return ask


@pytest.fixture(scope="session")
def off() -> Callable[..., np.ndarray]:
    """Give for Records of a training set how far a model's forecast is off: abs(forecast / measured - 1)."""

    def ask(model: Model, training: TrainingSet, records: Sequence[Record]) -> np.ndarray:
        blocks = [RowBlocks.of(training.structure(record)) for record in records]
        asked = zip(records, blocks, strict=True)
        times_s = np.array([float(model.values(record.candidate, of)[0]) for record, of in asked])
        return np.abs(times_s / [record.time_s for record in records] - 1)

    return ask
