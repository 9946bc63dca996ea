"""Forecasts of products on many ranks, from a profile with micro-benchmarks; no rank is started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from sparsecast.system.registry import Registry

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
    algorithms = _known(PRODUCTS, options.get("algorithms"))
    formats = _known(FORMATS, options.get("formats"))
    partitions = _known(METHODS, options.get("partitions"))
    refuse_objective(objective)
    name = options.get("model") or DEFAULT_CLUSTER_MODEL
    model = CLUSTER_MODELS.get(name)().fit(training_of_ranks(profile))
    problem = cluster_problem(A, profile, options.get("dtype"))
    if not problem.structure.nnz:
        raise InputError("a matrix without non-zeros: expected some to forecast; name another matrix")
    query = _Query(problem, model, per_node, algorithms or default_algorithms(), formats, partitions)
    forecasts = [forecast for count in sorted(set(ranks)) for forecast in query.of_ranks(count)]
    if not forecasts:
        nothing = (
            f"partitions {', '.join(partitions)} with algorithms {', '.join(algorithms)}: "
            f"expected {GRID} for algorithms of blocks, and another one for the others; name such"
        )
        raise InputError(next(iter(query.refused.values()), nothing))
    power = _power(problem, per_node, options, objective)
    if power is not None:
        structure = with_even_rows(problem.structure)
        forecasts = [power.of(forecast, structure) for forecast in forecasts]
    one_rank_s = query.one_rank_s()
    ordered = sorted(forecasts, key=lambda way: amount(objective, way.time_s, way.energy_j))
    return ClusterAnswer(
        "counts" if isinstance(A, Structure) else Problem.of(A).name,
        problem.structure,
        profile.name,
        name,
        tuple(ClusterChoice(forecast, one_rank_s, price) for forecast in ordered),
        query.refused,
        query.notes(forecasts),
        objective,
    )


def _known(registry: Registry[Any], names: Sequence[str] | None) -> list[str]:
    """Return names of members of a registry, each once; an unknown one is refused."""
    registry.require(names or ())
    return list(dict.fromkeys(names or ()))


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

    def distributed(self, ranks: int, method: str) -> tuple[Distribution, Partition | None]:
        """Return what each rank has of the matrix, and its partition, which is None of mere counts."""
        if self.matrix is None:
            counts = self.structure.rows, self.structure.cols, self.structure.nnz
            dimension = MESH_DIMENSION if self.is_square and method != GRID else None
            return estimated_distribution(*counts, ranks, method, dimension), None
        parts = partition(self.matrix, ranks, usable_method(method)[0])
        return distribute(self.matrix, parts), parts

    def question(
        self, product: type[DistributedProduct], distribution: Distribution, partition: Partition | None
    ) -> Question:
        """Return what is known of the matrix in a distribution; `partition` is None where there is none.

        What the node model says is of the slowest of the ranks with the most entries.
        """
        structure = self.structure
        lengths = structure.groups.get("row_lengths")
        mispredicted, deviation = (getattr(lengths, name, None) for name in ("mispredicted", "deviation"))
        share = None if mispredicted is None else mispredicted / max(structure.rows, 1)
        known = Question(distribution, mispredicted_share=share, deviation=deviation)
        if partition is not None:
            renumbered = cache(lambda: partition.renumbered(csr_array(self.matrix)))  # at the first block
            known = replace(known, block=lambda rank: block_of(renumbered(), partition, rank))
        if not self.has_node_times or not distribution.nnz.any():
            return known
        most = np.argsort(-distribution.nnz, kind="stable")[:_LOOKED_AT].tolist()
        if partition is None or known.block is None:
            rows, nnz = int(distribution.rows[most[0]]), int(distribution.nnz[most[0]])
            cols = max(int(product.x_words(distribution)[most[0]]), 1)
            counts = counted_structure(f"counts:rows={rows}&cols={cols}&nnz={min(nnz, rows * cols)}")
            return replace(known, local=self._predicted(counts), rank=most[0])
        timed: list[tuple[float, Question]] = []
        for rank in most:
            part = RankPart(partition, rank, known.block(rank))
            layout = local_layout(part) if product.has_remote else None
            # The matrix that a rank multiplies, and where that is apart the one of other ranks' x.
            matrices = (part.matrix, None) if layout is None else (layout.local, layout.remote)
            local, remote = map(self._predicted, matrices)
            least_s = [min((time.time_s for time in own.values()), default=0.0) for own in (local, remote)]
            timed.append((sum(least_s), replace(known, local=local, remote=remote, rank=rank)))
        return max(timed, key=lambda item: item[0])[1]

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
class _Query:
    """What is forecast of a matrix, and what was refused."""

    problem: ClusterProblem
    model: ClusterModel
    per_node: int
    algorithms: Sequence[str]
    formats: Sequence[str]
    partitions: Sequence[str]
    refused: dict[str, str] = field(default_factory=dict)

    def of_ranks(self, ranks: int) -> Iterator[ClusterForecast]:
        """Forecast every Configuration of a number of ranks; those without a forecast go to `refused`."""
        methods: Sequence[str] = self.partitions
        if not methods and self.problem.matrix is None:
            methods = ["metis" if self.problem.is_square else "rows", GRID]
        elif not methods:
            methods = [*dict.fromkeys((default_method(self.problem.matrix.shape)[0], "nonzeros")), GRID]
        for method in methods:
            suited = [name for name in self.algorithms if PRODUCTS.get(name).is_2d == (method == GRID)]
            if not suited:
                continue
            try:
                distribution, parts = self.problem.distributed(ranks, method)
            except InputError as error:
                self.refused[f"{method} on {ranks} ranks"] = str(error)
                continue
            questions: dict[object, Question] = {}
            for name in suited:
                product = PRODUCTS.get(name)
                layout = product.layout()
                if layout not in questions:
                    questions[layout] = self.problem.question(product, distribution, parts)
                yield from filter(self._fits, self._forecasts(name, method, questions[layout]))

    def one_rank_s(self) -> float | None:
        """Return the time of the fastest product on one rank; None without a forecast."""
        question = self.problem.question(PRODUCTS.get(_ALONE), *self.problem.distributed(1, "rows"))
        alone = replace(self, refused={})._forecasts(_ALONE, "rows", question)
        return min((forecast.time_s for forecast in alone), default=None)

    def _forecasts(self, algorithm: str, method: str, question: Question) -> Iterator[ClusterForecast]:
        """Forecast an algorithm in each format."""
        ranks = question.distribution.ranks
        fastest = min(question.local, key=lambda name: question.local[name].time_s, default="csr")
        for name in self.formats or dict.fromkeys((*COUNTED_FORMATS, fastest)):
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
            if lacking is None:
                yield from self.model.forecast([configuration], question)
            else:
                self.refused[f"{algorithm} {name} {method} on {ranks} ranks"] = lacking

    def _fits(self, forecast: ClusterForecast) -> bool:
        """Tell whether the ranks of a node fit in its memory; why not goes to `refused`."""
        way, held = forecast.configuration, self.problem.profile.machine.memory_bytes
        needed = forecast.memory_bytes * min(self.per_node, way.ranks)
        if needed > held:
            self.refused[f"{way.algorithm} {way.format} {way.partition} on {way.ranks} ranks"] = (
                f"{way.algorithm} in {way.format} on {way.ranks:,} ranks takes {needed / 1e9:.3g} GB of a "
                f"node: expected at most {held / 1e9:.3g} GB, its memory; name more ranks, or fewer a node"
            )
        return needed <= held

    def notes(self, forecasts: Sequence[ClusterForecast]) -> tuple[str, ...]:
        """Return the notes on the forecasts."""
        problem, ways = self.problem, [forecast.configuration for forecast in forecasts]
        methods = dict.fromkeys(way.partition for way in ways if problem.matrix is not None)
        notes = [note for method in methods for note in usable_method(method)[1]]
        published = problem.profile.machine.published_as
        if published is not None:
            notes.append(
                f"The profile {published} is made of published figures and data sheets: nothing was "
                f"measured on such a machine"
            )
        if found := disturbed(problem.profile.select(device=PROCESSOR, threads=1)):
            notes.append(f"The calibration was {found.sentence()}")
        rows = problem.structure.rows
        idle = {
            way.ranks for way in ways if (isqrt(way.ranks) if way.partition == GRID else way.ranks) > rows
        }
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
