"""The experiment of Hossain and Saule: products on 144 to 256 ranks of a cluster that nobody here has.

    python examples/hossain_saule.py TABLES.csv [--figure FILE]

TABLES.csv has the paper's tables II to IX, a row for each time, with the columns table, algorithm, format,
model, matrix, nodes, processes, actual_s, paper_predicted_s and paper_error_percent. The cluster is the
shipped profile `xeon-gold-6154-edr` of published figures. Rows, non-zeros and ranks are all that is read of a
matrix: for 2D and global 1D they suffice, and for local 1D the ranks are taken for parts of a mesh in two
dimensions.

First nothing is fitted: our forecast, their measurement and their forecast for each time, and the mean errors
beside the paper's own. Then the times on 144 and 169 ranks are given to the model as measured products, and
those on 225 and 256 are forecast. Last, each matrix is left out of the times on 144 and 169 ranks in turn,
for several weights of the common factor: PRIOR_WEIGHT of `sparsecast.models.clusters.sparsecast` is one.

--figure draws the first part: times over ranks by algorithm and matrix, measured, forecast, and forecast by
the paper.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from statistics import fmean

import sparsecast as sc
from sparsecast.errors import InputError, SparsecastError
from sparsecast.machines.profile import Profile
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.models.clusters.cluster_model import ClusterForecast, ClusterTraining, Question
from sparsecast.models.clusters.sparsecast import SparsecastClusterModel
from sparsecast.records import Configuration, DistributedRecord
from sparsecast.reports.charts.chart import (
    Chart,
    axis,
    counts_axis,
    format_look,
    panels,
    refuse_undrawable,
    render,
)

#: What a chart shows of each format.
SHOWN = ("ours", "the paper's", "measured")

PROFILE = "xeon-gold-6154-edr"

#: Rows and non-zeros of the graphs, as the SuiteSparse collection has them.
MATRICES = {
    "333SP": (3_712_815, 22_217_266),
    "AS365": (3_799_275, 22_736_152),
    "M6": (3_501_776, 21_003_872),
    "NLR": (4_163_763, 24_975_952),
    "hugetrace-00010": (12_057_441, 36_164_358),
    "road_central": (14_081_816, 33_866_826),
    "road_usa": (23_947_347, 57_708_624),
}

#: Those of finite elements; the others are roads and a trace of a simulation.
MESHES = ("333SP", "AS365", "M6", "NLR")

#: Our names of its algorithms, with the partition of each.
ALGORITHMS = {
    "uniform-2d": ("2d", "uniform-2d"),
    "global-1d": ("global-1d", "metis"),
    "local-1d": ("local-1d", "metis"),
}

#: Sections V.A and V.B: mean errors of the paper's model from micro-benchmarks.
OF_THE_PAPER = {
    ("2d", "csr"): 0.0762,
    ("2d", "coo"): 0.0916,
    ("global-1d", "csr"): 0.1363,
    ("global-1d", "coo"): 0.253,
    ("local-1d", "csr"): 0.0731,
    ("local-1d", "coo"): 0.0881,
}

#: Of the meshes that all of these graphs are taken for.
MESH_DIMENSION = 2

#: Ranks whose times are fitted in the second part; the others are forecast.
FITTED_RANKS = (144, 169)

#: Weights of the common factor that are compared.
WEIGHTS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class Published:
    """One published time, with the forecast of the paper."""

    matrix: str
    configuration: Configuration
    actual_s: float
    predicted_s: float

    @property
    def distribution(self) -> Distribution:
        """Return the estimated distribution of the matrix."""
        rows, nnz = MATRICES[self.matrix]
        way = self.configuration
        dimension = None if way.algorithm == "2d" else MESH_DIMENSION
        return estimated_distribution(rows, rows, nnz, way.ranks, way.partition, dimension)

    def record(self) -> DistributedRecord:
        """Return the time as a measured product, as the models learn from it."""
        return DistributedRecord(
            configuration=self.configuration,
            matrix=f"published:{self.matrix}/{self.matrix}",
            nnz=MATRICES[self.matrix][1],
            distribution=self.distribution.to_dict(),
            samples_s=(self.actual_s,),
            time_s=self.actual_s,
            spread=None,
            noise=None,
            error=None,
            is_oversubscribed=False,
            measured_at="published, not measured here",
            version="published",
        )


def read(path: Path) -> list[Published]:
    """Return the published times, each with the forecast of the model from micro-benchmarks."""
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            rows = [row for row in csv.DictReader(stream) if row["model"] == "microbenchmark"]
            found = [_published(row) for row in rows]
    except (OSError, KeyError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read ({error}): expected the tables II to IX of the paper as CSV; name it"
        ) from error
    if not found:
        raise InputError(f"{path} has no times: expected rows of the model microbenchmark; name another file")
    return found


def _published(row: dict[str, str]) -> Published:
    algorithm, partition = ALGORITHMS[row["algorithm"]]
    name = row["format"]
    way = Configuration(algorithm, name, name, partition, int(row["processes"]), int(row["nodes"]))
    if row["matrix"] not in MATRICES or isqrt(way.ranks) ** 2 != way.ranks:
        raise ValueError(f"{row['matrix']} on {way.ranks} ranks")
    return Published(row["matrix"], way, float(row["actual_s"]), float(row["paper_predicted_s"]))


def forecasts(
    profile: Profile, asked: Sequence[Published], known: Iterable[Published] = ()
) -> list[ClusterForecast]:
    """Return our forecast of each time, with the times of `known` as measured products."""
    records = tuple(each.record() for each in known)
    training = ClusterTraining(profile.machine, profile.microbenchmarks, records)
    model = SparsecastClusterModel().fit(training)
    return [model.forecast([each.configuration], Question(each.distribution))[0] for each in asked]


def show_weights(profile: Profile, known: Sequence[Published]) -> None:
    """Print for several weights the mean error on matrices that were left out of the fit."""
    print("\nMean errors on matrices left out of those ranks, by the weight of the common factor")
    speeds = ClusterTraining(profile.machine, profile.microbenchmarks)
    for weight in WEIGHTS:
        errors = []
        for name in MATRICES:
            records = tuple(each.record() for each in known if each.matrix != name)
            model = SparsecastClusterModel(weight).fit(dataclasses.replace(speeds, records=records))
            for each in known:
                if each.matrix == name:
                    found = model.forecast([each.configuration], Question(each.distribution))[0]
                    errors.append(abs(found.time_s / each.actual_s - 1))
        print(f"{weight:<6}{fmean(errors):7.2%}")


def show_each(asked: Sequence[Published], found: Sequence[ClusterForecast]) -> None:
    """Print a line for each time."""
    print("matrix           algorithm  format  ranks  ours, ms  measured, ms  theirs, ms   error")
    for each, forecast in zip(asked, found, strict=True):
        way = each.configuration
        error = forecast.time_s / each.actual_s - 1
        print(
            f"{each.matrix:17}{way.algorithm:11}{way.format:6}{way.ranks:7}{1e3 * forecast.time_s:10.3g}"
            f"{1e3 * each.actual_s:14.3g}{1e3 * each.predicted_s:12.3g}{error:+8.0%}"
        )


def show_errors(title: str, asked: Sequence[Published], found: Sequence[ClusterForecast]) -> None:
    """Print the mean errors by algorithm and format, ours and theirs on the same times."""
    ours, theirs, held = defaultdict(list), defaultdict(list), defaultdict(list)
    for each, forecast in zip(asked, found, strict=True):
        key = each.configuration.algorithm, each.configuration.format
        ours[key].append(abs(forecast.time_s - each.actual_s) / each.actual_s)
        if forecast.low_s is not None and forecast.high_s is not None:
            held[key].append(forecast.low_s <= each.actual_s <= forecast.high_s)
        theirs[key].append(abs(each.predicted_s - each.actual_s) / each.actual_s)
    print(
        f"\n{title}\nalgorithm  format  times   ours  theirs, same times  theirs, as printed  in our interval"
    )
    for (algorithm, name), errors in ours.items():
        within = str(sum(held[algorithm, name])) if held[algorithm, name] else "none"
        same, printed = fmean(theirs[algorithm, name]), OF_THE_PAPER[algorithm, name]
        print(
            f"{algorithm:11}{name:6}{len(errors):7}{fmean(errors):7.1%}{same:20.1%}{printed:20.1%}{within:>17}"
        )


def show_gather(asked: Sequence[Published], found: Sequence[ClusterForecast]) -> None:
    """Print what global 1D in CSR takes a row of the meshes: nearly all of it is Allgatherv."""
    ours, theirs = [], []
    for each, forecast in zip(asked, found, strict=True):
        rows = MATRICES[each.matrix][0]
        way = each.configuration.algorithm, each.configuration.format
        if way == ("global-1d", "csr") and each.matrix in MESHES:
            ours.append(1e9 * forecast.time_s / rows)
            theirs.append(1e9 * each.predicted_s / rows)
    if ours:
        print(
            f"\nGlobal 1D on the meshes, ns a row: our forecasts {min(ours):.1f} to {max(ours):.1f}, theirs "
            f"{min(theirs):.1f} to {max(theirs):.1f}"
        )


def show_choices(asked: Sequence[Published], found: Sequence[ClusterForecast]) -> None:
    """Print how often the fastest algorithm, and the fastest format of each algorithm, is named."""
    cases: dict[tuple[str, int], list[tuple[Published, float]]] = defaultdict(list)
    for each, forecast in zip(asked, found, strict=True):
        cases[each.matrix, each.configuration.ranks].append((each, forecast.time_s))
    named = 0
    for own in cases.values():
        least = min(each.actual_s for each, _ in own)
        fastest = {each.configuration.algorithm for each, _ in own if each.actual_s == least}
        named += min(own, key=lambda pair: pair[1])[0].configuration.algorithm in fastest
    print(f"\nThe fastest of the three algorithms is named in {named} of {len(cases)} cases.")
    for algorithm in dict.fromkeys(each.configuration.algorithm for each in asked):
        right = 0
        for every in cases.values():
            own = [pair for pair in every if pair[0].configuration.algorithm == algorithm]
            chosen = min(own, key=lambda pair: pair[1])[0]
            right += chosen.actual_s <= min(each.actual_s for each, _ in own)
        print(f"The faster format of {algorithm} is named in {right} of {len(cases)}, ties counted as right.")


def draw(asked: Sequence[Published], found: Sequence[ClusterForecast], path: Path) -> None:
    """Draw measured and forecast times over ranks, a panel for each algorithm and matrix."""
    cases: dict[tuple[str, str], list[tuple[Published, float]]] = defaultdict(list)
    for each, forecast in zip(asked, found, strict=True):
        cases[each.configuration.algorithm, each.matrix].append((each, forecast.time_s))
    charts = [case_chart(f"{algorithm}, {matrix}", own) for (algorithm, matrix), own in sorted(cases.items())]
    columns = len({matrix for _, matrix in cases})
    title = "Times of Hossain and Saule (tables II to IX), measured by them, and forecast with nothing fitted"
    render(panels("hossain", "", charts, columns), title, path)


def case_chart(caption: str, own: Sequence[tuple[Published, float]]) -> Chart:
    """Return the times of one algorithm on one matrix: of each format ours, theirs and the measured one."""
    formats = sorted({each.configuration.format.upper() for each, _ in own})
    rows = [
        {
            "ranks": each.configuration.ranks,
            "time_s": value,
            "what": f"{each.configuration.format.upper()}: {what}",
        }
        for each, seconds in own
        for what, value in zip(SHOWN, (seconds, each.predicted_s, each.actual_s), strict=True)
    ]
    names = [f"{name}: {what}" for name in formats for what in SHOWN]
    of_formats = format_look(formats)["color"]["scale"]["range"]
    colours = [colour for colour in of_formats for _ in SHOWN]
    dashes = [dash for _ in formats for dash in ([1, 0], [2, 3], [1, 0])]
    shown = {"field": "what", "type": "nominal", "title": None}
    encoding = {
        "x": counts_axis("ranks", "ranks", [row["ranks"] for row in rows]),
        "y": axis("time_s", "one product", [row["time_s"] for row in rows], "s"),
        "color": {**shown, "scale": {"domain": names, "range": colours}},
    }
    is_measured = f"indexof(datum.what, ': {SHOWN[-1]}') > 0"
    lines = {
        "transform": [{"filter": f"!({is_measured})"}],
        "mark": "line",
        "encoding": {**encoding, "strokeDash": {**shown, "scale": {"domain": names, "range": dashes}}},
    }
    points = {"transform": [{"filter": is_measured}], "mark": "point", "encoding": encoding}
    spec = {"data": {"values": rows}, "layer": [lines, points], "width": 200, "height": 180}
    return Chart("times", caption, spec)


def main() -> int:
    """Run the experiment and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tables", type=Path, metavar="TABLES.csv")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the times over ranks")
    options = parser.parse_args()
    try:
        if options.figure:
            refuse_undrawable(options.figure)
        published = read(options.tables)
        profile = sc.profile(PROFILE)
        found = forecasts(profile, published)
        if options.figure:
            draw(published, found, options.figure)
        show_each(published, found)
        show_errors("Nothing fitted: mean errors", published, found)
        show_gather(published, found)
        show_choices(published, found)
        known = [each for each in published if each.configuration.ranks in FITTED_RANKS]
        asked = [each for each in published if each.configuration.ranks not in FITTED_RANKS]
        title = f"{' and '.join(map(str, FITTED_RANKS))} ranks fitted: mean errors on the others"
        found = forecasts(profile, asked, known)
        show_errors(title, asked, found)
        show_choices(asked, found)
        show_weights(profile, known)
    except SparsecastError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
