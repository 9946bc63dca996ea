"""The choice among products on many ranks, from a profile with micro-benchmarks; no rank is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, isqrt
from typing import Any

from sparsecast.api.cluster_questions import AskedMatrix, asked_matrix
from sparsecast.api.forecasting import without_joules
from sparsecast.api.resolving import calibrated_profile, machine_of, model_records, training_for
from sparsecast.api.resolving import energy_model as fitted_energy_model
from sparsecast.benchmark.distributed_journal import kept_distributed
from sparsecast.devices.target import Target
from sparsecast.errors import InputError, ProfileError, UnknownNameError, remedy_for
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.matrices.partitioning.methods import (
    METHODS,
    checked_ranks,
    default_method,
    idle_ranks_note,
    partition,
    usable_method,
)
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.matrices.problem import Problem
from sparsecast.models.clusters import CLUSTER_MODELS, DEFAULT_CLUSTER_MODEL
from sparsecast.models.clusters.cluster_model import (
    ADD_MICROBENCHMARKS,
    ClusterForecast,
    ClusterModel,
    ClusterTraining,
    Question,
)
from sparsecast.models.knowledge import Withheld, with_even_rows
from sparsecast.models.power_files import PowerFile
from sparsecast.planning.cluster_choice import choices, enough_ranks
from sparsecast.planning.cluster_energy import ClusterPower, PricesWork
from sparsecast.planning.plan import refuse_objective
from sparsecast.records import ALGORITHMS, Configuration
from sparsecast.results.cluster import ClusterAnswer

#: Formats of the paper, which every model of ranks forecasts without times of products on a node.
_ALWAYS = ("csr", "coo")

#: The partition of 2D; every other one is of rows.
_GRID = "uniform-2d"

#: Dimension of the mesh that a square matrix is taken for of which only counts are known.
MESH_DIMENSION = 2

#: Names that `--algorithms` takes. PETSc computes while it communicates, as local-1d-overlap does.
_KNOWN_ALGORITHMS = (*ALGORITHMS, "petsc")


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
    power_model: PowerFile | None = None,
    energy_model: str | None = None,
    objective: str = "time",
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
    power_model : PowerFile, optional
        What a node draws, in place of what the profile's Records with joules tell.
    energy_model : str, optional
        Name of the model that learns from these, which must tell joules by kinds of work.
    objective : str
        By what the choices are ordered: ``"time"``, ``"energy"``, or ``"edp"``, energy times time.

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
    refuse_objective(objective)
    name = DEFAULT_CLUSTER_MODEL if model is None else model
    chosen = CLUSTER_MODELS.get(name)()
    fit = chosen.fit(training_of_ranks(profile))
    asked = asked_matrix(A, profile)
    if not asked.structure.nnz:
        raise InputError("a matrix without non-zeros: expected some to forecast; name another matrix")
    found = _Answering(asked, fit, per_node, tuple(algorithms or ALGORITHMS), formats, partitions)
    forecasts = [each for count in sorted(set(ranks)) for each in found.of_ranks(count)]
    if not forecasts:
        raise InputError(
            next(
                iter(found.refused.values()),
                f"partitions {', '.join(partitions or ())} with algorithms {', '.join(algorithms or ())}: "
                f"expected {_GRID} for 2d, and another one for the others; name such",
            )
        )
    power = _power(asked, per_node, power_model, energy_model, objective)
    if power is not None:
        known = with_even_rows(asked.structure)
        forecasts = [power.of(each, known) for each in forecasts]
    ordered = choices(forecasts, found.one_rank_s(), price, objective)
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
        objective,
    )


def _power(
    asked: AskedMatrix,
    per_node: int,
    power_model: PowerFile | None,
    energy_model: str | None,
    objective: str,
) -> ClusterPower | None:
    """Return what a node draws: as a file says, or as Records with joules do; None where nothing tells.

    Raises
    ------
    ProfileError
        If an objective needs joules, and there are none.
    """
    machine = asked.profile.machine
    if power_model is not None:
        return ClusterPower(machine, power_model.joules)
    fit = None
    target = Target(PROCESSOR, asked.dtype, asked.index_bits, per_node)
    if asked.has_node_times and model_records(asked.profile, target):
        training = training_for(asked.profile, target)
        fit = fitted_energy_model(Withheld.of(asked.structure, training).training(training), energy_model)
    if isinstance(fit, PricesWork):
        return ClusterPower(machine, fit.joules_, fit.ends_)
    if objective != "time":
        raise without_joules(objective, asked.profile)
    return None


def training_of_ranks(profile: Profile) -> ClusterTraining:
    """Return what models of many ranks learn from: micro-benchmarks, and what was kept of the machine.

    Raises
    ------
    ProfileError
        If there are no micro-benchmarks, or the journal of kept records is damaged.
    """
    if not profile.microbenchmarks:
        raise ProfileError(
            f"profile {profile.name} has no micro-benchmarks of ranks: expected some; {ADD_MICROBENCHMARKS}"
        )
    return ClusterTraining(profile.machine, profile.microbenchmarks, kept_distributed(profile.machine))


def _checked(ranks: Sequence[int], ranks_per_node: int | None, price: float | None, profile: Profile) -> int:
    """Return the ranks of a node; refuse numbers that cannot be."""
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
                remedy = remedy_for(name, expected, "name one")
                raise UnknownNameError(f"{kind} '{name}' is unknown: known are {listed}; {remedy}")


class _Answering:
    """One question, and what was refused on the way."""

    def __init__(
        self,
        asked: AskedMatrix,
        fit: ClusterModel,
        per_node: int,
        algorithms: Sequence[str],
        formats: Sequence[str] | None,
        partitions: Sequence[str] | None,
    ) -> None:
        self._asked, self._fit, self._per_node = asked, fit, per_node
        # Each once, however often it was named.
        self._algorithms = tuple(dict.fromkeys(algorithms))
        self._formats, self._partitions = tuple(dict.fromkeys(formats or ())), partitions
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
            questions: dict[str, Question] = {}
            for algorithm in algorithms:
                # Local 1D has the same parts with overlap and without.
                layout = algorithm if algorithm in ("global-1d", "2d") else "local-1d"
                if layout not in questions:
                    questions[layout] = self._asked.question(layout, distribution, partition)
                question = questions[layout]
                yield from self._forecasts(algorithm, method, question)

    def one_rank_s(self) -> float | None:
        """Return the time of the fastest product on one rank; None where there is no forecast."""
        refused, self.refused = self.refused, {}
        distribution, partition = self._distributed(1, "rows")
        question = self._asked.question("global-1d", distribution, partition)
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
        way = found.configuration
        return (
            f"{way.algorithm} in {way.format} on {way.ranks:,} ranks takes {needed / 1e9:.3g} GB of a node: "
            f"expected at most {machine.memory_bytes / 1e9:.3g} GB, its memory; name more ranks, "
            f"or fewer a node"
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
        ways = [each.configuration for each in forecasts]
        rows = asked.structure.rows
        idle = {w.ranks for w in ways if (isqrt(w.ranks) if w.algorithm == "2d" else w.ranks) > rows}
        if idle:
            said.append(idle_ranks_note(sorted(idle), rows))
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
