"""Forecasts of products on many ranks, from a profile with micro-benchmarks; no rank is started."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import ceil, isqrt
from typing import Any, TypedDict, Unpack

import numpy as np
from scipy.sparse import csr_array

from sparsecast.api.forecasting import without_joules
from sparsecast.api.profiles import calibrated_profile, disturbed, model_records, training_for
from sparsecast.api.profiles import energy_model as fitted_energy_model
from sparsecast.api.sessions import Session
from sparsecast.api.settings import Setting, Trust, refuse_unknown
from sparsecast.benchmark.journal import kept
from sparsecast.devices import machine_of
from sparsecast.devices.target import Target
from sparsecast.distributed.distributed_product import DistributedProduct
from sparsecast.distributed.parts import RankPart, block_of, local_layout
from sparsecast.distributed.products import PRODUCTS, default_algorithms
from sparsecast.errors import InputError, ProfileError
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import PROCESSOR as PROCESSOR
from sparsecast.machines.profile import Profile
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.matrices.partitioning.methods import (
    GRID,
    METHODS,
    checked_ranks,
    default_method,
    idle_ranks_note,
    partition,
    usable_method,
)
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.structure_files import counted_structure
from sparsecast.models.clusters import CLUSTER_MODELS as CLUSTER_MODELS
from sparsecast.models.clusters import DEFAULT_CLUSTER_MODEL
from sparsecast.models.clusters.cluster_model import (
    ADD_MICROBENCHMARKS,
    COUNTED_FORMATS,
    ClusterForecast,
    ClusterModel,
    ClusterTraining,
    Question,
)
from sparsecast.models.power import ClusterPower, PowerFile, PowerModel
from sparsecast.models.training import Withheld, with_even_rows
from sparsecast.planning.plan import refuse_objective
from sparsecast.records import Configuration, Forecast
from sparsecast.results.cluster import ClusterAnswer, ClusterChoice
from sparsecast.results.plan import amount

#: The product whose time on one rank is the reference of parallel efficiency.
_ALONE = "global-1d"

#: Dimension of the mesh that is assumed for a square matrix of which only counts are known.
MESH_DIMENSION = 2


class ClusterOptions(TypedDict, total=False):
    """Options of `cluster` beside a matrix, ranks and a profile.

    `ranks_per_node` is by default the number of cores of the machine. `algorithms` are by default all
    built-in ones; `formats` are CSR, COO and the fastest one of a single rank; `partitions` are rows by
    non-zeros, METIS if it is installed and the matrix is square, and for 2D the uniform grid. `model` is one
    of CLUSTER_MODELS. `power_model` gives the power of a node, in place of the profile's Records with joules;
    `energy_model` names the model that learns from these Records, which must give joules by kinds of work.
    `dtype` is as in `Setting`.
    """

    ranks_per_node: int | None
    algorithms: Sequence[str] | None
    formats: Sequence[str] | None
    partitions: Sequence[str] | None
    model: str | None
    power_model: PowerFile | None
    energy_model: str | None
    dtype: str | None


def cluster(
    A: Any,
    ranks: Sequence[int],
    profile: Profile | None = None,
    *,
    price: float | None = None,
    objective: str = "time",
    **options: Unpack[ClusterOptions],
) -> ClusterAnswer:
    """Forecast products on many ranks, and sort algorithms, formats, partitions and numbers of ranks.

    Parameters
    ----------
    A : sparse matrix or Structure
        Of a Structure, only rows, columns and non-zeros are read. The parts of the ranks are then assumed to
        be those of a two-dimensional mesh, and a note says so.
    ranks : sequence of int
        Numbers of ranks to compare. 2D needs square numbers.
    profile : Profile, optional
        Profile with micro-benchmarks of several ranks; by default this machine's.
    price : float, optional
        Price per node and hour, in any currency.
    objective : str
        Order of the choices: ``"time"``, ``"energy"``, or ``"edp"``, energy times time.
    **options
        `ranks_per_node`, `algorithms`, `formats`, `partitions`, `model`, `power_model`, `energy_model` and
        `dtype`, as in `ClusterOptions`.

    Raises
    ------
    InputError
        If a number or a name is invalid, or no choice has a forecast.
    ProfileError
        If the profile lacks micro-benchmarks.
    """
    refuse_unknown(ClusterOptions, options)
    profile = profile or calibrated_profile(machine_of(PROCESSOR))
    per_node = _checked(ranks, options.get("ranks_per_node"), price, profile)
    algorithms = list(dict.fromkeys(options.get("algorithms") or ()))
    formats = list(dict.fromkeys(options.get("formats") or ()))
    partitions = list(dict.fromkeys(options.get("partitions") or ()))
    PRODUCTS.require(algorithms)
    FORMATS.require(formats)
    METHODS.require(partitions)
    refuse_objective(objective)
    name = options.get("model") or DEFAULT_CLUSTER_MODEL
    fit = CLUSTER_MODELS.get(name)().fit(training_of_ranks(profile))
    problem = cluster_problem(A, profile, options.get("dtype"))
    if not problem.structure.nnz:
        raise InputError("a matrix without non-zeros: expected some to forecast; name another matrix")
    answering = _Answering(problem, fit, per_node, algorithms or default_algorithms(), formats, partitions)
    forecasts = [forecast for count in sorted(set(ranks)) for forecast in answering.of_ranks(count)]
    if not forecasts:
        raise InputError(
            next(
                iter(answering.refused.values()),
                f"partitions {', '.join(partitions)} with algorithms {', '.join(algorithms)}: "
                f"expected {GRID} for algorithms of blocks, and another one for the others; name such",
            )
        )
    power = _power(problem, per_node, options, objective)
    if power is not None:
        structure = with_even_rows(problem.structure)
        forecasts = [power.of(forecast, structure) for forecast in forecasts]
    one_rank_s = answering.one_rank_s()
    ordered = sorted(forecasts, key=lambda way: amount(objective, way.time_s, way.energy_j))
    return ClusterAnswer(
        "counts" if isinstance(A, Structure) else Problem.of(A).name,
        problem.structure,
        profile.name,
        name,
        tuple(ClusterChoice(forecast, one_rank_s, price) for forecast in ordered),
        answering.refused,
        answering.notes(forecasts),
        objective,
    )


def _power(
    problem: ClusterProblem, per_node: int, options: ClusterOptions, objective: str
) -> ClusterPower | None:
    """Return the power of a node, from a file or from Records with joules; None without either."""
    machine = problem.profile.machine
    if (power_model := options.get("power_model")) is not None:
        return ClusterPower(machine, power_model.joules)
    fit = None
    target = Target(PROCESSOR, problem.dtype, problem.index_bits, per_node)
    if problem.has_node_times and model_records(problem.profile, target):
        training = training_for(problem.profile, target)
        fit = fitted_energy_model(
            Withheld.of(problem.structure, training).training(training), options.get("energy_model")
        )
    if isinstance(fit, PowerModel):
        return ClusterPower(machine, fit.joules_, fit.ends_)
    if objective != "time":
        raise without_joules(objective, problem.profile)
    return None


def training_of_ranks(profile: Profile) -> ClusterTraining:
    """Return the training set of models of many ranks: micro-benchmarks and kept Records of the machine."""
    if not profile.microbenchmarks:
        raise ProfileError(
            f"profile {profile.name} has no micro-benchmarks of ranks: expected some; {ADD_MICROBENCHMARKS}"
        )
    return ClusterTraining(profile.machine, profile.microbenchmarks, tuple(kept(profile.machine).distributed))


def _checked(ranks: Sequence[int], ranks_per_node: int | None, price: float | None, profile: Profile) -> int:
    """Return the ranks per node; refuse invalid numbers."""
    if not ranks:
        raise InputError("ranks: expected at least one number of them; name one, such as 64")
    for count in ranks:
        checked_ranks(count)
    cores = profile.machine.cores
    per_node = cores if ranks_per_node is None else ranks_per_node
    if not 1 <= per_node <= cores:
        raise InputError(
            f"ranks a node {per_node}: expected 1 to {cores}, the cores of a node of {profile.name}; name one"
        )
    if price is not None and not 0 <= price < float("inf"):
        raise InputError(f"price {price:g}: expected a finite number that is not negative; name one")
    return per_node


#: Ranks with the most entries, of which the slowest is looked for.
_LOOKED_AT = 2


@dataclass(frozen=True)
class ClusterProblem:
    """A matrix, or its counts, with the profile and the type that products are forecast for."""

    matrix: Any
    structure: Structure
    profile: Profile
    dtype: str

    @property
    def index_bits(self) -> int:
        """Of column indices that reach all of the matrix."""
        return 32 if max(self.structure.nnz, self.structure.rows, self.structure.cols) < 2**31 else 64

    @property
    def is_square(self) -> bool:
        """Whether it has as many rows as columns."""
        return self.structure.rows == self.structure.cols

    @cached_property
    def _node(self) -> Session:
        """What forecasts the products of one rank."""
        return Session(
            self.profile, Setting(1, self.dtype, PROCESSOR), Trust(drift_correction=False, anyway=True)
        )

    @property
    def has_node_times(self) -> bool:
        """Whether the profile has times of products on a node."""
        machine = self.profile.machine
        return machine.published_as is None and any(
            record.candidate.device == PROCESSOR for record in self.profile.records
        )

    def question(
        self, product: type[DistributedProduct], distribution: Distribution, partition: Partition | None
    ) -> Question:
        """Return what is known of the matrix in a distribution; `partition` is None where there is none.

        What the node model says is of the slowest of the ranks with the most entries.
        """
        structure = self.structure
        lengths = structure.groups.get("row_lengths")
        mispredicted = getattr(lengths, "mispredicted", None)
        share = None if mispredicted is None else mispredicted / max(structure.rows, 1)
        deviation = getattr(lengths, "deviation", None)
        block = None if partition is None else self._block_of(partition)
        known = Question(distribution, mispredicted_share=share, deviation=deviation, block=block)
        if not self.has_node_times or not distribution.nnz.any():
            return known
        most = np.argsort(-distribution.nnz, kind="stable")[:_LOOKED_AT].tolist()
        if partition is None or block is None:
            rows, nnz = int(distribution.rows[most[0]]), int(distribution.nnz[most[0]])
            cols = max(int(product.x_words(distribution)[most[0]]), 1)
            counts = counted_structure(f"counts:rows={rows}&cols={cols}&nnz={min(nnz, rows * cols)}")
            return replace(known, local=self._predicted(counts), rank=most[0])
        timed: list[tuple[float, Question]] = []
        for rank in most:
            part = RankPart(partition, rank, block(rank))
            layout = local_layout(part) if product.has_remote else None
            # The matrix that a rank multiplies, and where that is apart the one of other ranks' x.
            matrices = (part.matrix, None) if layout is None else (layout.local, layout.remote)
            local, remote = map(self._predicted, matrices)
            least_s = [min((time.time_s for time in own.values()), default=0.0) for own in (local, remote)]
            timed.append((sum(least_s), replace(known, local=local, remote=remote, rank=rank)))
        return max(timed, key=lambda item: item[0])[1]

    def _block_of(self, partition: Partition) -> Callable[[int], csr_array[Any]]:
        """Return what gives the block of a rank; the matrix is renumbered at the first one."""
        renumbered = cache(lambda: partition.renumbered(csr_array(self.matrix)))
        return lambda rank: block_of(renumbered(), partition, rank)

    def _predicted(self, part: Any) -> Mapping[str, Forecast]:
        """Return the times of a part; none of one without entries, which takes no time that matters."""
        if part is None or not part.nnz:
            return {}
        if not isinstance(part, Structure):
            part.sort_indices()
        times: dict[str, Forecast] = {}
        for forecast in self._node.predict(part):
            times.setdefault(forecast.candidate.format, forecast)
        return times


def cluster_problem(A: Any, profile: Profile, dtype: str | None = None) -> ClusterProblem:
    """Return the problem of a sparse matrix, or of the counts of a Structure; an InputError for its dtype."""
    dtype = Target.of(A, profile.machine, None, dtype).dtype
    if isinstance(A, Structure):
        return ClusterProblem(None, A, profile, dtype)
    problem = Problem.of(A)
    return ClusterProblem(problem.matrix, problem.sampled_structure, profile, dtype)


@dataclass
class _Answering:
    """One query, and what was refused for it."""

    problem: ClusterProblem
    model: ClusterModel
    per_node: int
    algorithms: Sequence[str]
    formats: Sequence[str]
    partitions: Sequence[str]
    refused: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)

    def of_ranks(self, ranks: int) -> Iterator[ClusterForecast]:
        """Forecast every Configuration of a number of ranks; those without a forecast go to `refused`."""
        for method, algorithms in self._methods(ranks):
            if not algorithms:
                continue
            try:
                distribution, partition = self._distributed(ranks, method)
            except InputError as error:
                self.refused[f"{method} on {ranks} ranks"] = str(error)
                continue
            questions: dict[object, Question] = {}
            for algorithm in algorithms:
                product = PRODUCTS.get(algorithm)
                if product.layout() not in questions:
                    questions[product.layout()] = self.problem.question(product, distribution, partition)
                yield from self._forecasts(algorithm, method, questions[product.layout()])

    def one_rank_s(self) -> float | None:
        """Return the time of the fastest product on one rank; None without a forecast."""
        alone = replace(self, refused={})
        distribution, partition = alone._distributed(1, "rows")
        question = alone.problem.question(PRODUCTS.get(_ALONE), distribution, partition)
        return min(
            (forecast.time_s for forecast in alone._forecasts(_ALONE, "rows", question, is_checked=False)),
            default=None,
        )

    def _methods(self, ranks: int) -> Iterator[tuple[str, list[str]]]:
        """Yield each partition with the algorithms that use it."""
        problem, methods = self.problem, self.partitions
        if not methods and problem.matrix is None:
            methods = ["metis" if problem.is_square else "rows", GRID]
        elif not methods:
            methods = [*dict.fromkeys((default_method(problem.matrix.shape)[0], "nonzeros")), GRID]
        of_blocks = [name for name in self.algorithms if PRODUCTS.get(name).is_2d]
        of_rows = [name for name in self.algorithms if name not in of_blocks]
        side = isqrt(ranks)
        for method in methods:
            if method != GRID:
                yield method, of_rows
            elif side * side == ranks:
                yield method, of_blocks
            else:
                for name in of_blocks:
                    self.refused[f"{name} on {ranks} ranks"] = (
                        f"{ranks} ranks for {name}: expected a square; name {side**2} or {(side + 1) ** 2}"
                    )

    def _distributed(self, ranks: int, method: str) -> tuple[Distribution, Partition | None]:
        problem = self.problem
        if problem.matrix is None:
            counted = problem.structure
            is_mesh = problem.is_square and method != GRID
            counts = counted.rows, counted.cols, counted.nnz
            dimension = MESH_DIMENSION if is_mesh else None
            return estimated_distribution(*counts, ranks, method, dimension), None
        serving, notes = usable_method(method)
        self.remarks |= dict.fromkeys(notes)
        parts = partition(problem.matrix, ranks, serving)
        return distribute(problem.matrix, parts), parts

    def _forecasts(
        self, algorithm: str, method: str, question: Question, *, is_checked: bool = True
    ) -> Iterator[ClusterForecast]:
        ranks = question.distribution.ranks
        fastest = min(question.local, key=lambda name: question.local[name].time_s, default="csr")
        for name in self.formats or dict.fromkeys((*COUNTED_FORMATS, fastest)):
            where = f"{algorithm} {name} {method} on {ranks} ranks"
            remote = name if name in (*COUNTED_FORMATS, *question.remote) else "csr"
            configuration = Configuration(
                algorithm=algorithm,
                format=name,
                remote_format=remote if PRODUCTS.get(algorithm).has_remote else name,
                partition=method,
                ranks=ranks,
                nodes=ceil(ranks / self.per_node),
                dtype=self.problem.dtype,
                index_bits=self.problem.index_bits,
            )
            lacking = self.model.lacking(configuration, question)
            if lacking is not None:
                self.refused[where] = lacking
                continue
            (forecast,) = self.model.forecast([configuration], question)
            machine, count = self.problem.profile.machine, min(self.per_node, ranks)
            needed = forecast.memory_bytes * count
            if not is_checked or needed <= machine.memory_bytes:
                yield forecast
            else:
                what = f"{algorithm} in {name} on {ranks:,} ranks takes {needed / 1e9:.3g} GB of a node"
                most = f"expected at most {machine.memory_bytes / 1e9:.3g} GB, its memory"
                self.refused[where] = f"{what}: {most}; name more ranks, or fewer a node"

    def notes(self, forecasts: Sequence[ClusterForecast]) -> tuple[str, ...]:
        """Return the notes on the forecasts."""
        problem, notes = self.problem, list(self.remarks)
        published = problem.profile.machine.published_as
        if published is not None:
            notes.append(
                f"The profile {published} is made of published figures and data sheets: nothing was "
                f"measured on such a machine"
            )
        if found := disturbed(problem.profile.select(device=PROCESSOR, threads=1)):
            notes.append(f"The calibration was {found.sentence()}")
        rows = problem.structure.rows
        ranks_and_parts = {
            (way.ranks, isqrt(way.ranks) if PRODUCTS.get(way.algorithm).is_2d else way.ranks)
            for way in (forecast.configuration for forecast in forecasts)
        }
        idle = {ranks for ranks, parts in ranks_and_parts if parts > rows}
        if idle:
            notes.append(idle_ranks_note(sorted(idle), rows))
        if problem.matrix is None:
            mesh = f" of a mesh in {MESH_DIMENSION} dimensions" if problem.is_square else ""
            notes.append(
                f"Only rows, columns and non-zeros are known: the ranks are taken for equal parts{mesh}; "
                f"their imbalance, and what each gets from which others, is unknown"
            )
        if not problem.has_node_times:
            notes.append(
                "The profile has no times of products on a node: bytes, misses and mispredicted row ends at "
                "the speed of memory take their place"
            )
        if any(forecast.low_s is None for forecast in forecasts):
            notes.append(
                "Some forecasts have no interval: nothing was measured on that machine that would tell "
                "its width"
            )
        return tuple(notes)
