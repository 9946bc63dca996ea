"""How far off machines are that are forecast from a data sheet: each measured one is left out once.

    python benchmarks/data_sheets.py GINKGO NTUA [--write]

GINKGO is the table of ginkgo-project/ginkgo-data, commit b9082895 (CC BY 4.0), of which the GPUs count, and
NTUA that of the real matrices of cslab-ntua/SpMV-Research, tree 5533c7f1, of which the processors count. For
each machine, `sparsecast.models.data_sheets` learns from the others of its kind: the share of the peak, the
power of computing and the share of the caches with the least mean, over ordered pairs of machines, of the
median of abs(log(measured / forecast)); and intervals, from leaving each of these others out in turn, with
what is then left. Where fewer than two are left, the data sheet is taken at its word. Printed are, of the
machine that was left out,

- like: the one of the others whose data sheet is the nearest, by bandwidth and by cores times frequency;
- as it is: the median error where times of that one stand for those asked for; bandwidth: where they are
  divided by the ratio of the bandwidths; data sheet: by the law. Of all results that both have;
- large: the last, of products that move more than LARGE bytes; any: the median over all others in place of
  the nearest;
- inside: the share of the results in the intervals, from the nearest, and from any;
- forecast, inside: the whole way, where the matrices are not known either. A fifth of the groups of matrices
  is held out; the model learns from the profile that is made of the nearest.

An error is abs(forecast - measured) / measured. With --write, what all machines teach together goes to the
file that is shipped.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import permutations, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from sparsecast import models
from sparsecast.benchmark.made_machines import made_profile
from sparsecast.benchmark.published import import_published, published_profiles
from sparsecast.machines.data_sheet import DataSheet
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import group_of
from sparsecast.models.data_sheets import Law, Learned, Products, kind_of
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet

Floats = NDArray[np.float64]

#: What is tried: shares of the peak, powers of cores times frequency, and shares of the caches.
SHARES, POWERS, KEPT = np.linspace(0.1, 1.0, 10), np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 5)

#: Places along log(time / start) at which intervals end, and the share of the errors that they hold.
PLACES, INSIDE = 8, 0.9

LARGE = 20_000_000

#: Groups of matrices are held out in so many parts, of which one is asked for.
PARTS = 5

PROCESSORS_MEASURED = ("Epyc1", "Epyc64", "Icy")


@dataclass(frozen=True)
class Machine:
    """A measured machine: its profile, its data sheet, its products, and where each Record is."""

    profile: Profile
    sheet: DataSheet
    products: Products
    places: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, profile: Profile) -> Machine:
        """Return the machine of a profile whose data sheet is known."""
        places = {(r.matrix, r.candidate.kernel): place for place, r in enumerate(profile.records)}
        return cls(profile, profile.machine.sheet, Products.of(profile.records, profile.matrices), places)

    def common(self, other: Machine) -> tuple[Products, Products]:
        """Return the products of both that are the same, in one order."""
        keys = [key for key in self.places if key in other.places]
        return (
            self.products.part([self.places[key] for key in keys]),
            other.products.part([other.places[key] for key in keys]),
        )


Machines = Mapping[str, Machine]


@dataclass(frozen=True)
class Scaled:
    """Products of one machine, forecast from those of another: arrays of shape (products,)."""

    forecast: Floats
    start_s: Floats
    asked: Products

    @property
    def logs(self) -> Floats:
        """log(measured / forecast)."""
        return np.log(self.asked.time_s / self.forecast)

    @property
    def over_start(self) -> Floats:
        """log(forecast / start)."""
        return np.log(np.maximum(self.forecast / self.start_s, 1.0))

    def error(self, chosen: object = slice(None)) -> float:
        """Return the median error."""
        return float(np.median(np.abs(np.expm1(-self.logs[chosen]))))


def scaled(like: Machine, asked: Machine, law: Law) -> Scaled:
    """Forecast a machine from another one and both data sheets."""
    known, wanted = like.common(asked)
    return Scaled(law.scaled(known, like.sheet, asked.sheet), known.start_s, wanted)


def law_of(machines: Machines) -> Law:
    """Return the law that machines teach; fewer than two teach none."""
    common = [(like, asked, *like.common(asked)) for like, asked in permutations(machines.values(), 2)]
    if not common:
        return Law()

    def loss(law: Law) -> float:
        medians = [
            np.median(np.abs(np.log(wanted.time_s / law.scaled(known, like.sheet, asked.sheet))))
            for like, asked, known, wanted in common
        ]
        return float(np.mean(medians))

    laws = (Law(round(float(s), 2), float(p), float(k)) for s, p, k in product(SHARES, POWERS, KEPT))
    return min(laws, key=loss)


def without(machines: Machines, name: str) -> dict[str, Machine]:
    """Return the others."""
    return {other: machine for other, machine in machines.items() if other != name}


def learned_from(machines: Machines) -> Learned:
    """Return the law of machines, and how far off each of them is that is left out."""
    errors = []
    for name, asked in machines.items():
        others = without(machines, name)
        law = law_of(others)
        errors += [scaled(like, asked, law) for like in others.values()]
    # Each pair counts the same: as many of its products as the smallest pair has, evenly spread.
    least = min(len(each.forecast) for each in errors)
    spread = [np.linspace(0, len(each.forecast) - 1, least).astype(int) for each in errors]
    x = np.concatenate([each.over_start[own] for each, own in zip(errors, spread, strict=True)])
    y = np.concatenate([each.logs[own] for each, own in zip(errors, spread, strict=True)])
    windows = np.array_split(np.argsort(x, kind="stable"), PLACES)
    beyond = (1 - INSIDE) / 2

    def ends(pick: Callable[[NDArray[np.int64]], float]) -> tuple[float, ...]:
        return tuple(round(float(pick(own)), 4) for own in windows)

    return Learned(
        law_of(machines),
        tuple(machines),
        ends(lambda own: np.median(x[own])),
        ends(lambda own: np.quantile(y[own], beyond)),
        ends(lambda own: np.quantile(y[own], 1 - beyond)),
    )


def nearest(sheet: DataSheet, machines: Machines) -> str:
    """Return the machine with the nearest data sheet."""

    def distance(name: str) -> float:
        other = machines[name].sheet
        bandwidth = abs(math.log(other.bandwidth_bytes_per_s / sheet.bandwidth_bytes_per_s))
        return bandwidth + abs(math.log(other.cycles_per_s / sheet.cycles_per_s))

    return min(machines, key=distance)


def inside(found: Scaled, known: Learned) -> float:
    """Return the share of products in the intervals."""
    low, high = (np.interp(found.over_start, known.over_start, ends) for ends in (known.low, known.high))
    return float(np.mean((np.minimum(low, 0) <= found.logs) & (found.logs <= np.maximum(high, 0))))


def whole_way(like: Machine, asked: Machine, known: Learned) -> tuple[float, float]:
    """Return median error and share inside for matrices of groups that were held out."""
    groups = sorted({group_of(record.matrix) for record in asked.profile.records})
    out = set(groups[::PARTS])
    made = made_profile("left-out", like.profile, asked.sheet, known)
    rest = [record for record in made.records if group_of(record.matrix) not in out]
    model = SparsecastModel().fit(TrainingSet.of(made, rest))
    candidates = {record.candidate.kernel: record.candidate for record in made.records}
    errors, holds = [], []
    for record in asked.profile.records:
        own = candidates.get(record.candidate.kernel)
        if own is None or group_of(record.matrix) not in out or not model.serves(own):
            continue
        for each in model.estimates(asked.profile.structure(record), [own]):
            errors.append(abs(each.value / record.time_s - 1))
            holds.append((each.low or 0) <= record.time_s <= (each.high or math.inf))
    return float(np.median(errors)), float(np.mean(holds))


def row(name: str, machines: Machines) -> Iterator[str]:
    """Give the cells of the machine that is left out."""
    asked, others = machines[name], without(machines, name)
    known = learned_from(others)
    like = nearest(asked.sheet, others)
    times, wanted = others[like].common(asked)
    ratio = others[like].sheet.bandwidth_bytes_per_s / asked.sheet.bandwidth_bytes_per_s
    plain = [Scaled(factor * times.time_s, times.start_s, wanted) for factor in (1.0, ratio)]
    best = scaled(others[like], asked, known.law)
    every = [scaled(other, asked, known.law) for other in others.values()]
    yield name
    yield like
    yield f"{known.law.share_of_peak:.1f} {known.law.computing:.2f} {known.law.share_kept:.2f}"
    yield f"{len(best.forecast):,}"
    for each in (*plain, best):
        yield f"{each.error():.0%}"
    yield f"{best.error(best.asked.bytes > LARGE):.0%}"
    yield f"{np.median([each.error() for each in every]):.0%}"
    yield f"{inside(best, known):.0%}"
    yield f"{np.mean([inside(each, known) for each in every]):.0%}"
    for share in whole_way(others[like], asked, known):
        yield f"{share:.0%}"


def main() -> None:
    """Print a table of each kind of machines, or write what they teach."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("ginkgo", type=Path, metavar="GINKGO")
    parser.add_argument("ntua", type=Path, metavar="NTUA")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    profiles = published_profiles(asked.ginkgo)
    profiles = {name: profile for name, profile in profiles.items() if kind_of(profile.machine) == "gpu"}
    profiles |= {name: import_published([asked.ntua], name, name).profile for name in PROCESSORS_MEASURED}
    kinds: dict[str, dict[str, Machine]] = {"gpu": {}, "cpu": {}}
    for name, profile in profiles.items():
        kinds[kind_of(profile.machine)][name] = Machine.of(profile)
    if asked.write:
        found = {kind: asdict(learned_from(machines)) for kind, machines in kinds.items()}
        path = Path(models.__file__).parent / "data_sheets.json"
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(path.name)
        return
    for kind, machines in kinds.items():
        table = Table(title=f"{kind}: each machine left out, median errors")
        headings = ("machine", "like", "law", "results", "as it is", "bandwidth", "data sheet", "large")
        for heading in (*headings, "any", "inside", "any", "forecast", "inside"):
            table.add_column(heading, justify="left" if heading in ("machine", "like") else "right")
        for name in machines:
            table.add_row(*row(name, machines))
        Console(width=140).print(table)


if __name__ == "__main__":
    main()
