"""The choice among products on many ranks, from a profile with micro-benchmarks; no rank is started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isqrt
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.api.forecasting import predict
from sparsecast.api.resolving import calibrated_profile, machine_of
from sparsecast.benchmark.distributed_journal import kept_distributed
from sparsecast.cluster_records import ALGORITHMS, Configuration
from sparsecast.errors import InputError, ProfileError, UnknownNameError
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.structure_files import counted_structure
from sparsecast.models.clusters import CLUSTER_MODELS, DEFAULT_CLUSTER_MODEL
from sparsecast.models.clusters.cluster_model import (
    ADD_MICROBENCHMARKS,
    ClusterForecast,
    ClusterModel,
    ClusterTraining,
    LocalTime,
    Question,
)
from sparsecast.partitioning.distributing import distribute
from sparsecast.partitioning.distribution import Distribution
from sparsecast.partitioning.estimates import estimated_distribution
from sparsecast.partitioning.methods import METHODS, default_method, partition, usable_method
from sparsecast.partitioning.partition import Partition
from sparsecast.planning.cluster_choice import ClusterAnswer, choices, enough_ranks

#: Formats of the paper, which every model of ranks forecasts without times of products on a node.
_ALWAYS = ("csr", "coo")

#: The partition of 2D; every other one is of rows.
_GRID = "uniform-2d"

#: Dimension of the mesh that a square matrix is taken for of which only counts are known.
MESH_DIMENSION = 2

#: Names that `--algorithms` takes. PETSc computes while it communicates, as local-1d-overlap does.
_KNOWN_ALGORITHMS = (*ALGORITHMS, "petsc")


@dataclass(frozen=True)
class _Asked:
    """A matrix, or its counts, and the machine that it is asked for."""

    matrix: Any
    structure: Structure
    profile: Profile
    dtype: str

    @property
    def index_bits(self) -> int:
        return 32 if max(self.structure.nnz, self.structure.rows, self.structure.cols) < 2**31 else 64

    @property
    def is_square(self) -> bool:
        return self.structure.rows == self.structure.cols

    @property
    def has_node_times(self) -> bool:
        machine = self.profile.machine
        return machine.published_as is None and any(
            record.candidate.device == PROCESSOR for record in self.profile.records
        )


def cluster(
    A: Any,
    ranks: Sequence[int],
    profile: Profile | None = None,
    *,
    ranks_per_node: int | None = None,
    algorithms: Sequence[str] | None = None,
    formats: Sequence[str] | None = None,
    partitions: Sequence[str] | None = None,
    price: float | None = None,
    model: str | None = None,
) -> ClusterAnswer:
    """Forecast products on many ranks, and rank algorithm, format, partition and number of ranks.

    Parameters
    ----------
    A : sparse matrix or Structure
        Of a Structure only rows, columns and non-zeros are read; the ranks are then taken for parts of a
        mesh in two dimensions, and a note says so.
    ranks : sequence of int
        Numbers of ranks to compare. 2D needs squares.
    profile : Profile, optional
        With micro-benchmarks of several ranks; by default this machine's.
    ranks_per_node : int, optional
        As many as the machine has cores by default.
    algorithms, formats, partitions : sequence of str, optional
        By default the products that we have; CSR, COO and what is fastest for a rank alone; METIS where it
        is installed and the matrix is square, or else rows by non-zeros, and for 2D the uniform grid.
    price : float, optional
        Of a node and hour, in any currency.
    model : str, optional
        One of CLUSTER_MODELS.

    Raises
    ------
    InputError
        If a number or a name cannot be, or nothing that is asked for has a forecast.
    ProfileError
        If the profile lacks micro-benchmarks.
    """
    profile = profile or calibrated_profile(machine_of(PROCESSOR))
    per_node = _checked(ranks, ranks_per_node, price, profile)
    _refuse_unknown(algorithms, formats, partitions)
    name = DEFAULT_CLUSTER_MODEL if model is None else model
    chosen = CLUSTER_MODELS.get(name)()
    fit = chosen.fit(_training(profile))
    asked = _asked(A, profile)
    found = _Answering(asked, fit, per_node, tuple(algorithms or ALGORITHMS), formats, partitions)
    forecasts = [each for count in sorted(set(ranks)) for each in found.of_ranks(count)]
    if not forecasts:
        raise InputError(next(iter(found.refused.values()), "nothing was asked for: name an algorithm"))
    ordered = choices(forecasts, found.one_rank_s(), price)
    label = Problem.of(A).name if not isinstance(A, Structure) else "counts"
    return ClusterAnswer(
        label,
        asked.structure,
        profile.name,
        name,
        ordered,
        found.refused,
        found.notes(forecasts),
        enough_ranks(ordered),
    )


def _training(profile: Profile) -> ClusterTraining:
    if not profile.microbenchmarks:
        raise ProfileError(
            f"profile {profile.name} has no micro-benchmarks of ranks: expected some; {ADD_MICROBENCHMARKS}"
        )
    return ClusterTraining(profile.machine, profile.microbenchmarks, kept_distributed(profile.machine))


def _asked(A: Any, profile: Profile) -> _Asked:
    if isinstance(A, Structure):
        return _Asked(None, A, profile, "float64")
    problem = Problem.of(A)
    dtype = problem.matrix.dtype.name if problem.matrix.dtype.kind in "fc" else "float64"
    return _Asked(problem.matrix, problem.sampled_structure, profile, dtype)


def _checked(ranks: Sequence[int], ranks_per_node: int | None, price: float | None, profile: Profile) -> int:
    """Return the ranks of a node; refuse numbers that cannot be."""
    if not ranks:
        raise InputError("ranks: expected at least one number of them; name one, such as 64")
    for count in ranks:
        if not 1 <= count < 2**31:
            raise InputError(f"ranks {count}: expected 1 to {2**31 - 1}; name such a number")
    cores = profile.machine.cores
    per_node = cores if ranks_per_node is None else ranks_per_node
    if not 1 <= per_node <= cores:
        raise InputError(
            f"ranks a node {per_node}: expected 1 to {cores}, the cores of a node of {profile.name}; name one"
        )
    if price is not None and not 0 <= price < float("inf"):
        raise InputError(f"price {price:g}: expected a finite number that is not negative; name one")
    return per_node


def _refuse_unknown(
    algorithms: Sequence[str] | None, formats: Sequence[str] | None, partitions: Sequence[str] | None
) -> None:
    known = (
        ("algorithm", algorithms, _KNOWN_ALGORITHMS),
        ("format", formats, FORMATS.names()),
        ("partition", partitions, METHODS.names()),
    )
    for kind, names, expected in known:
        for name in names or ():
            if name not in expected:
                listed = ", ".join(expected)
                raise UnknownNameError(f"{kind} '{name}' is unknown: known are {listed}; name one")


class _Answering:
    """One question, and what was refused on the way."""

    def __init__(
        self,
        asked: _Asked,
        fit: ClusterModel,
        per_node: int,
        algorithms: Sequence[str],
        formats: Sequence[str] | None,
        partitions: Sequence[str] | None,
    ) -> None:
        self._asked, self._fit, self._per_node = asked, fit, per_node
        self._algorithms, self._formats, self._partitions = algorithms, formats, partitions
        self.refused: dict[str, str] = {}
        self._said: dict[str, None] = {}

    def of_ranks(self, ranks: int) -> Iterator[ClusterForecast]:
        """Forecast every Configuration of a number of ranks; what has no forecast goes to `refused`."""
        for method, algorithms in self._methods(ranks):
            try:
                distribution, partition = self._distributed(ranks, method)
            except InputError as error:
                self.refused[f"{method} on {ranks} ranks"] = str(error)
                continue
            for algorithm in algorithms:
                question = self._question(algorithm, distribution, partition)
                yield from self._forecasts(algorithm, method, question)

    def one_rank_s(self) -> float | None:
        """Return the time of the fastest product on one rank; None where there is no forecast."""
        refused, self.refused = self.refused, {}
        distribution, partition = self._distributed(1, "rows")
        question = self._question("global-1d", distribution, partition)
        found = [each.time_s for each in self._forecasts("global-1d", "rows", question, is_checked=False)]
        self.refused = refused
        return min(found, default=None)

    def _methods(self, ranks: int) -> Iterator[tuple[str, list[str]]]:
        """Give each partition with the algorithms that use it."""
        of_rows = [each for each in self._algorithms if each != "2d"]
        methods = self._partitions or (self._default_method(), _GRID)
        for method in dict.fromkeys(methods):
            if method != _GRID:
                yield method, of_rows
            elif "2d" in self._algorithms:
                side = isqrt(ranks)
                if side * side == ranks:
                    yield method, ["2d"]
                    continue
                self.refused[f"2d on {ranks} ranks"] = (
                    f"{ranks} ranks for 2d: expected a square; name {side**2} or {(side + 1) ** 2}"
                )

    def _default_method(self) -> str:
        if self._asked.matrix is None:
            return "metis" if self._asked.is_square else "rows"
        return default_method(self._asked.matrix.shape)[0]

    def _distributed(self, ranks: int, method: str) -> tuple[Distribution, Partition | None]:
        asked = self._asked
        if asked.matrix is None:
            counted = asked.structure
            is_mesh = asked.is_square and method != _GRID
            counts = counted.rows, counted.cols, counted.nnz
            dimension = MESH_DIMENSION if is_mesh else None
            return estimated_distribution(*counts, ranks, method, dimension), None
        serving, notes = usable_method(method)
        self._said |= dict.fromkeys(notes)
        found = partition(asked.matrix, ranks, serving)
        return distribute(asked.matrix, found), found

    def _question(self, algorithm: str, distribution: Distribution, partition: Partition | None) -> Question:
        structure = self._asked.structure
        lengths = structure.groups.get("row_lengths")
        mispredicted = getattr(lengths, "mispredicted", None)
        share = None if mispredicted is None else mispredicted / max(structure.rows, 1)
        local, remote = self._node_times(algorithm, distribution, partition)
        return Question(distribution, local, remote, share, getattr(lengths, "deviation", None))

    def _node_times(
        self, algorithm: str, distribution: Distribution, partition: Partition | None
    ) -> tuple[Mapping[str, LocalTime], Mapping[str, LocalTime]]:
        """Return what the node model says of the rank with the most entries; nothing without one."""
        if not self._asked.has_node_times or not distribution.nnz.any():
            return {}, {}
        rank = int(np.argmax(distribution.nnz))
        if partition is None:
            parts: tuple[Any, Any] = (_counts(distribution, rank, algorithm), None)
        else:
            parts = _local_matrices(self._asked.matrix, partition, rank, algorithm)
        local, remote = (self._predicted(each) for each in parts)
        return local, remote

    def _predicted(self, part: Any) -> Mapping[str, LocalTime]:
        if part is None:
            return {}
        found: dict[str, LocalTime] = {}
        asked = self._asked
        for each in predict(part, asked.profile, threads=1, dtype=asked.dtype, device=PROCESSOR, as_met=True):
            name = each.candidate.format
            found.setdefault(name, LocalTime(each.time_s, each.low_s, each.high_s, each.bytes))
        return found

    def _forecasts(
        self, algorithm: str, method: str, question: Question, *, is_checked: bool = True
    ) -> Iterator[ClusterForecast]:
        distribution = question.distribution
        nodes = ceil(distribution.ranks / self._per_node)
        for name in self._formats or _default_formats(question):
            where = f"{algorithm} {name} {method} on {distribution.ranks} ranks"
            if name not in _ALWAYS and name not in question.local:
                self.refused[where] = (
                    f"format {name} has no forecast for a rank's part: expected times of it in the profile; "
                    f"calibrate, or name csr or coo"
                )
                continue
            remote = name if name in _ALWAYS or name in question.remote else "csr"
            configuration = Configuration(
                algorithm,
                name,
                remote if algorithm not in ("2d", "global-1d") else name,
                method,
                distribution.ranks,
                nodes,
                self._asked.dtype,
                self._asked.index_bits,
            )
            lacking = self._fit.lacking(configuration)
            if lacking is not None:
                self.refused[where] = lacking
                continue
            for each in self._fit.forecast([configuration], question):
                too_much = self._too_much(each) if is_checked else None
                if too_much is None:
                    yield each
                else:
                    self.refused[where] = too_much

    def _too_much(self, found: ClusterForecast) -> str | None:
        """Return in words that a node has not the memory; None where it has, or nobody tells."""
        machine = self._asked.profile.machine
        on_node = min(self._per_node, found.configuration.ranks)
        needed = found.memory_bytes * on_node
        if needed <= machine.memory_bytes:
            return None
        return (
            f"{on_node} ranks of a node take {needed / 1e9:.3g} GB: expected at most "
            f"{machine.memory_bytes / 1e9:.3g} GB, the memory of a node; name more ranks, or fewer a node"
        )

    def notes(self, forecasts: Sequence[ClusterForecast]) -> tuple[str, ...]:
        """Return what a reader must know of the forecasts."""
        asked = self._asked
        published = asked.profile.machine.published_as
        said = list(self._said)
        if published is not None:
            said.append(
                f"The profile {published} is made of published figures and data sheets: nothing was "
                f"measured on such a machine"
            )
        if asked.matrix is None:
            mesh = f" of a mesh in {MESH_DIMENSION} dimensions" if asked.is_square else ""
            said.append(
                f"Only rows, columns and non-zeros are known: the ranks are taken for equal parts{mesh}; "
                f"their imbalance, and what each gets from which others, is unknown"
            )
        if not asked.has_node_times:
            said.append(
                "The profile has no times of products on a node: bytes, misses and mispredicted row ends at "
                "the speed of memory take their place"
            )
        if any(each.low_s is None for each in forecasts):
            said.append(
                "Some forecasts have no interval: nothing was measured on that machine that would tell "
                "its width"
            )
        return tuple(said)


def _default_formats(question: Question) -> tuple[str, ...]:
    """Return CSR, COO and what the node model finds fastest."""
    fastest = min(question.local, key=lambda name: question.local[name].time_s, default="csr")
    return tuple(dict.fromkeys((*_ALWAYS, fastest)))


def _counts(distribution: Distribution, rank: int, algorithm: str) -> Structure:
    rows, nnz = int(distribution.rows[rank]), int(distribution.nnz[rank])
    cols = distribution.shape[1] if algorithm == "global-1d" else int(distribution.columns[rank])
    if algorithm not in ("global-1d", "2d"):
        cols += int(distribution.received_words[rank])
    return counted_structure(f"counts:rows={rows}&cols={max(cols, 1)}&nnz={min(nnz, rows * max(cols, 1))}")


def _local_matrices(A: Any, partition: Partition, rank: int, algorithm: str) -> tuple[Any, Any]:
    """Return the matrix that a rank multiplies, and in local 1D also that of the other ranks' x."""
    renumbered = partition.renumbered(csr_array(A))
    row = rank // partition.parts if partition.is_2d else rank
    column = rank % partition.parts if partition.is_2d else rank
    own = renumbered[int(partition.row_bounds[row]) : int(partition.row_bounds[row + 1])]
    if algorithm == "global-1d":
        return _usable(own), None
    first, end = int(partition.column_bounds[column]), int(partition.column_bounds[column + 1])
    local = csr_array(own[:, first:end])
    if partition.is_2d or algorithm == "2d":
        return _usable(local), None
    entries = own.tocoo()
    is_remote = (entries.coords[1] < first) | (entries.coords[1] >= end)
    needed, places = np.unique(entries.coords[1][is_remote], return_inverse=True)
    shape = own.shape[0], max(len(needed), 1)
    remote = csr_array((entries.data[is_remote], (entries.coords[0][is_remote], places)), shape=shape)
    return _usable(local), _usable(remote)


def _usable(part: Any) -> Any:
    """Return a part with entries; None for one without, which takes no time that matters."""
    part = csr_array(part)
    part.sort_indices()
    return part if part.nnz else None
