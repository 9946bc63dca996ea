"""What a processor could be told from few products of its own and the Records of another one: a replay.

No hardware is used. Errors are abs(forecast - measured) / measured.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, permutations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from experiment import Rows, experiment, percent
from sparsecast.benchmark.published import import_published
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.models.fitting import conformal_bound
from sparsecast.models.model import HELD_OUT_SUITE
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet
from sparsecast.models.transfer import Setting
from sparsecast.models.work import capacity
from sparsecast.records import Record

PANEL = "Forecasts"

#: Processors of the table of published results.
PROCESSORS_MEASURED = ("Epyc1", "Epyc64", "Icy")

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

#: Standard deviations of logarithms: of a ratio of times, and of its parts before anything is measured: all
#: products, a kernel, a pair of cache levels, a factor e of bytes and of entries a row.
NOISE, OF_ALL, OF_KERNEL, OF_LEVELS, OF_SIZE = 0.2, 1.0, 0.3, 0.4, 0.1


@dataclass(frozen=True)
class Processor:
    """A measured processor in one setting; each Record by what makes a product the same elsewhere."""

    name: str
    profile: Profile
    setting: Setting
    records: Mapping[tuple[Any, ...], Record]

    def level(self, size: float) -> int:
        """Return the cache that holds so many bytes; 0 for memory."""
        caches = self.profile.machine.product_caches
        return next((c.level for c in caches if c.level > 1 and size <= capacity(c, self.setting.threads)), 0)


def processors(profiles: list[str], real: Path | None) -> Iterator[Processor]:
    """Yield the processors of profiles in every setting, and those of published results."""
    for profile in map(find_profile, profiles):
        for setting in dict.fromkeys(Setting.of(record.candidate) for record in profile.records):
            own = [r for r in profile.records if Setting.of(r.candidate) == setting and r.regime == "warm"]
            name = f"{profile.machine.processor}, {setting.dtype}, {setting.threads}"
            yield Processor(name, profile, setting, {_product(record): record for record in own})
    for name in PROCESSORS_MEASURED if real else ():
        assert real is not None
        profile = import_published([real], name, name).profile
        setting = Setting.of(profile.records[0].candidate)
        yield Processor(name, profile, setting, {_product(record): record for record in profile.records})


def _product(record: Record) -> tuple[Any, ...]:
    candidate, version = record.candidate, record.kernel_version
    return record.matrix, candidate.format, candidate.kernel, candidate.parameters, version


@dataclass(frozen=True)
class Pair:
    """A processor that is asked about, and another one: arrays of shape (Records of the other one,).

    Attributes
    ----------
    ratio : float array
        log(time on the one / time on the other); NaN where the one has no such Record.
    kernels, matrices : object arrays
    levels : int array of shape (Records, 2)
        Where the data lie on both.
    sizes : float array of shape (Records, 2)
        log of the bytes of a product, and of the entries of a row.
    """

    asked: Processor
    other: Processor
    ratio: Floats
    kernels: NDArray[np.object_]
    matrices: NDArray[np.object_]
    levels: NDArray[np.int64]
    sizes: Floats

    @classmethod
    def of(cls, asked: Processor, other: Processor) -> Pair:
        """Compare two processors product by product."""
        ratio, kernels, matrices, levels, sizes = [], [], [], [], []
        for product, record in other.records.items():
            structure, same = other.profile.structure(record), asked.records.get(product)
            size = record.stored_bytes + (structure.rows + structure.cols) * record.candidate.value_bytes
            ratio.append(math.log(same.time_s / record.time_s) if same else math.nan)
            is_published = other.profile.machine.published_as is not None
            kernels.append(record.candidate.kernel if is_published else record.candidate.format)
            matrices.append(record.matrix)
            levels.append((asked.level(size), other.level(size)))
            sizes.append((math.log(size), math.log1p(structure.nnz / max(structure.rows, 1))))
        return cls(
            asked,
            other,
            np.array(ratio),
            np.array(kernels, dtype=object),
            np.array(matrices, dtype=object),
            np.array(levels),
            np.array(sizes),
        )

    @property
    def common(self) -> Places:
        return np.flatnonzero(np.isfinite(self.ratio))

    @property
    def usual_kernel(self) -> str:
        """The one with the most common products: plain CSR where the kernels are ours."""
        return str(Counter(self.kernels[self.common]).most_common(1)[0][0])

    def references(self, count: int, rng: np.random.Generator, kernel: str | None = None) -> Places:
        """Return products drawn at random, those of each kernel and level in turn; not of the gallery."""
        drawn = [
            place
            for place in rng.permutation(self.common).tolist()
            if not self.matrices[place].startswith(HELD_OUT_SUITE)
            and (kernel is None or self.kernels[place] == kernel)
        ]
        seen: Counter[Any] = Counter()
        turns = []
        for place in drawn:
            kind = self.kernels[place], tuple(self.levels[place])
            turns.append((seen[kind], place))
            seen[kind] += 1
        return np.array([place for _, place in sorted(turns, key=lambda turn: turn[0])[:count]])


#: Returns what an attempt expects of log(time on the one / time on the other), from reference products.
Attempt = Callable[[Pair, Places], Floats]


def as_it_is(pair: Pair, references: Places) -> Floats:
    """Return 0: the other processor's times are taken."""
    return np.zeros(len(pair.ratio))


def by_bandwidths(pair: Pair, references: Places) -> Floats:
    """Return the ratio of the speeds that the fastest tenth of the usual kernel reaches in each level."""
    expected = np.zeros(len(pair.ratio))
    other_s = np.array([record.time_s for record in pair.other.records.values()])
    speed = np.exp(pair.sizes[:, 0]) / other_s
    usual = np.isfinite(pair.ratio) & (pair.kernels == pair.usual_kernel)
    for level in np.unique(pair.levels[:, 0]):
        here = pair.levels[:, 0] == level
        if (known := usual & here).any():
            own = np.quantile(speed[known] / np.exp(pair.ratio[known]), 0.9)
            expected[here] = math.log(np.quantile(speed[known], 0.9) / own)
    return expected


def by_kernel(pair: Pair, references: Places) -> Floats:
    """Return the median of the reference products of the same kernel, of all where there are none."""
    expected = np.full(len(pair.ratio), np.median(pair.ratio[references]))
    for kernel in np.unique(pair.kernels[references]):
        own = references[pair.kernels[references] == kernel]
        expected[pair.kernels == kernel] = np.median(pair.ratio[own])
    return expected


def by_regression(pair: Pair, references: Places) -> Floats:
    """Return a ratio for all, and what kernels, levels and sizes change of it: by ridge regression."""
    columns: list[Any] = [np.ones(len(pair.ratio))]
    priors = [OF_ALL]
    for values, prior in ((pair.kernels, OF_KERNEL), (pair.levels @ [10, 1], OF_LEVELS)):
        kinds = np.unique(values)
        columns += [values == kind for kind in kinds]
        priors += [prior] * len(kinds)
    terms = np.column_stack([*columns, *(pair.sizes - np.median(pair.sizes, axis=0)).T]).astype(float)
    priors += [OF_SIZE] * pair.sizes.shape[1]
    known = terms[references]
    normal = known.T @ known + np.diag(NOISE**2 / np.square(priors))
    return np.asarray(terms @ np.linalg.solve(normal, known.T @ pair.ratio[references]))


#: Attempts by name: how, and whether the reference products are of the usual kernel alone.
ATTEMPTS: Mapping[str, tuple[Attempt, bool]] = {
    "as it is": (as_it_is, False),
    "by bandwidths": (by_bandwidths, False),
    "by products of a kernel": (by_kernel, False),
    "regression, all kernels": (by_regression, False),
    "regression, one kernel": (by_regression, True),
}


def errors(pair: Pair, name: str, count: int, draws: int) -> Floats:
    """Return log(measured / forecast) of the products that are no references, of all draws."""
    attempt, is_of_one = ATTEMPTS[name]
    rng, found = np.random.default_rng(0), []
    for _ in range(draws):
        references = pair.references(count, rng, pair.usual_kernel if is_of_one else None)
        others = pair.common[~np.isin(pair.matrices[pair.common], pair.matrices[references])]
        found.append((pair.ratio - attempt(pair, references))[others])
    return np.concatenate(found)


def in_gallery(pair: Pair, name: str, count: int) -> dict[str, Any]:
    """Return median error, mean regret and the worst format of the model that scaled Records teach."""
    asked, other = pair.asked, pair.other
    attempt, is_of_one = ATTEMPTS[name]
    rng = np.random.default_rng(0)
    factors = np.exp(attempt(pair, pair.references(count, rng, pair.usual_kernel if is_of_one else None)))
    scaled = [
        replace(
            record,
            time_s=record.time_s * factor,
            candidate=replace(record.candidate, threads=asked.setting.threads),
        )
        for record, factor in zip(other.records.values(), factors.tolist(), strict=True)
    ]
    model = SparsecastModel().fit(TrainingSet(asked.profile.machine, tuple(scaled), other.profile.matrices))
    error_of: dict[str, list[float]] = {}
    forecasts: dict[str, list[tuple[float, float]]] = {}
    for record in asked.records.values():
        if record.suite == HELD_OUT_SUITE:
            for each in model.estimates(asked.profile.structure(record), [record.candidate]):
                forecasts.setdefault(record.matrix, []).append((each.value, record.time_s))
                error_of.setdefault(record.candidate.format, []).append(abs(each.value / record.time_s - 1))
    medians = {format_name: float(np.median(found)) for format_name, found in error_of.items()}
    worst = max(medians, key=medians.__getitem__)
    chosen = [min(own)[1] / min(time_s for _, time_s in own) for own in forecasts.values()]
    return {
        "gallery error": float(np.median(list(chain.from_iterable(error_of.values())))),
        "gallery regret": float(np.mean(chosen)) - 1,
        "worst there": f"{worst} {percent(medians[worst])}",
    }


@experiment(PANEL)
def first_answer(
    profiles: Annotated[list[str], typer.Argument(metavar="PROFILE...")],
    real: Annotated[Path | None, typer.Option(metavar="REAL", help="Table of published processors.")] = None,
    references: Annotated[int, typer.Option(min=2, help="Products that are measured first.")] = 20,
    draws: int = 20,
) -> Rows:
    """Forecast each processor from the nearest other one, of another machine, and a few products of its own.

    One profile a machine, of two machines at least; Records of the same version of a kernel are compared.
    Nearest is the one with the most equal times of reference products. Errors are of measured times that were
    scaled, medians and 90th percentiles over draws of the references; in the gallery those of the model
    sparsecast that scaled Records teach. "within" are those in an interval that pairs without this machine
    teach, whose ends lie so many "times" apart.
    """
    every = list(processors(profiles, real))
    pairs = [
        pair
        for asked, other in permutations(every, 2)
        if asked.profile.name != other.profile.name and asked.setting.dtype == other.setting.dtype
        if len((pair := Pair.of(asked, other)).common) > references
    ]
    for name in ATTEMPTS:
        by_pair = [(pair, errors(pair, name, references, draws)) for pair in pairs]
        for asked in every:
            own = [(pair, logs) for pair, logs in by_pair if pair.asked is asked]
            if not own:
                continue
            pair, logs = min(own, key=lambda item: _difference(item[0], references))
            machine = asked.profile.name
            scores = [
                np.abs(others)
                for p, others in by_pair
                if machine not in (p.asked.profile.name, p.other.profile.name)
            ]
            bound = conformal_bound(np.concatenate(scores)) if scores else None
            error = np.abs(np.expm1(-logs))
            is_measured = any(record.suite == HELD_OUT_SUITE for record in asked.records.values())
            yield {
                "attempt": name,
                "processor": asked.name,
                "like": pair.other.name,
                "error": float(np.median(error)),
                "90th error": float(np.quantile(error, 0.9)),
                **(in_gallery(pair, name, references) if is_measured else {}),
                "within": None if bound is None else float(np.mean(np.abs(logs) <= bound)),
                "times": None if bound is None else math.exp(2 * bound),
            }


def _difference(pair: Pair, count: int) -> float:
    drawn = pair.references(count, np.random.default_rng(0), pair.usual_kernel)
    return float(np.mean(np.abs(pair.ratio[drawn])))
