"""`sparsecast paper hossain-saule`: tables II to XI, and the models on what ranks of this machine measured.

The cluster is the shipped profile of published figures, with the inputs that `fitted_inputs` finds. Products
on the ranks of this machine are measured by runs that mpirun starts, and each is kept as soon as it is
measured; with `--from` no rank is started. A graph of the paper that is named as a matrix is partitioned with
METIS, and so is a graph of the gallery with as many rows, such as `gallery:delaunay?n=3712815` for 333SP; of
the others counts are known, and local 1D takes them for meshes.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from math import isqrt
from pathlib import Path
from statistics import fmean
from typing import Any

from sparsecast.api.clustering import cluster_problem
from sparsecast.api.evaluating import cluster_fits, replay_ranks
from sparsecast.api.profiles import calibrated_profile, require_own
from sparsecast.api.ranks import started_ranks
from sparsecast.benchmark.experiments import EXPERIMENTS, Experiment, ExperimentSetting, refuse_other_devices
from sparsecast.benchmark.journal import kept
from sparsecast.devices import machine_of
from sparsecast.distributed.products import PRODUCTS
from sparsecast.errors import InputError, MpiError
from sparsecast.machines.machine import PROCESSOR, Machine
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.matrices.families import split_specification
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.methods import partition
from sparsecast.matrices.problem import GALLERY_PREFIX, Problem
from sparsecast.models.clusters.cluster_model import Question
from sparsecast.papers import described, published
from sparsecast.papers.hossain_saule import ALGORITHMS_OF_THE_PAPER, FORMATS_OF_THE_PAPER
from sparsecast.papers.hossain_saule.comparison import (
    MEASURED,
    ComparedTime,
    PublishedTime,
    QuestionOf,
    compared_times,
    fastest_named,
    published_times,
    summaries,
)
from sparsecast.papers.hossain_saule.linear import SUITE
from sparsecast.reports.charts.chart import Chart, axis, counts_axis, format_look, layer, panels
from sparsecast.results.cluster import ClusterEvaluation
from sparsecast.results.paper import PaperReport, known_mean
from sparsecast.system.tabular import Column, Columns, Table, grouped, lines_of
from sparsecast.system.texts import percent

#: The paper's cluster.
CLUSTER = "xeon-gold-6154-edr"

#: What the models are tried on where no matrix is named: a mesh and a network, as the paper's graphs are.
MATRICES = ("gallery:poisson2d?n=500", "gallery:rmat?scale=16")

#: Shares of the budget for the calibration, and for it and the matrices; starts and fits take the rest.
CALIBRATING, MEASURING = 0.6, 0.8

LEAST_BUDGET_S = 10.0

_PAUSE_S = 0.5


#: The paper's model of each table, and which of them our names are.
PAPER_MODELS = {
    **dict.fromkeys(MEASURED, "micro-benchmarks"),
    **dict.fromkeys(("VIII", "IX"), "lines"),
    **dict.fromkeys(("X", "XI"), "regression"),
}
#: Tables of the same products, in CSR and in COO.
PAIRED = {table: pair for pair in ("II, III", "IV, V", "VI, VII", "VIII, IX") for table in pair.split(", ")}
MODEL_KINDS = {"hossain-micro": "micro-benchmarks", "hossain-linear": "lines", "hossain-svr": "regression"}


def _of_formats(*columns: Column) -> Columns:
    """Return columns of CSR, then the same of COO, for rows of `_side_by_side`."""
    return tuple(
        replace(column, key=f"{name}_{column.key}", heading=f"{name.upper()}: {column.heading}")
        for name in FORMATS_OF_THE_PAPER
        for column in columns
    )


ALGORITHM, MATRIX = Column("algorithm", "algorithm"), Column("matrix", "matrix")
PAPER, OURS = Column("paper", "paper", text=percent), Column("ours_error", "sparsecast", text=percent)
MICRO = Column("micro_error", "hossain-micro", text=percent)

SUMMARY: Columns = (
    Column("table", "tables"),
    ALGORITHM,
    Column("paper_model", "paper's model"),
    *_of_formats(
        replace(PAPER, key="paper_error"),
        MICRO,
        Column("micro_distance", "from the paper's forecasts", text=percent),
        Column("fitted", "an input fitted to it"),
        Column("ours_error", "sparsecast, other matrices known", text=percent),
        Column("plain_error", "nothing known", text=percent),
    ),
)

#: Of a graph in an algorithm, over its numbers of ranks.
BY_GRAPH: Columns = (
    MATRIX,
    ALGORITHM,
    *_of_formats(
        Column("most_s", "measured, most ranks"),
        *(Column(kind, f"paper, {kind}", text=percent) for kind in dict.fromkeys(PAPER_MODELS.values())),
        MICRO,
        OURS,
    ),
)

OF_RMAT: Columns = (
    MATRIX,
    ALGORITHM,
    *_of_formats(
        Column("actual_s", "measured"),
        Column("paper_s", "paper"),
        Column("ours_s", "sparsecast"),
        replace(PAPER, key="paper_error", heading="paper, error"),
        replace(OURS, heading="sparsecast, error"),
    ),
)

ON_RANKS: Columns = (
    ALGORITHM,
    Column("ranks", "ranks"),
    Column("model", "model"),
    Column("products", "products"),
    *_of_formats(
        Column("error", "mean error", text=percent),
        replace(PAPER, heading="the paper's, on its cluster"),
    ),
)

#: What rows of both formats share, beside tables, matrices and algorithms.
SHARED = ("paper_model", "ranks", "model", "products")

#: The lines of a chart, the second one dashed, and its size.
_FORECASTS, _SIZE = ["sparsecast", "the paper's"], {"width": 200, "height": 180}


@EXPERIMENTS.register("hossain-saule")
class HossainSaule(Experiment):
    """Tables II to XI next to ours."""

    paper = described("hossain_saule")

    def run(self, setting: ExperimentSetting) -> PaperReport:
        """Measure products on the ranks of this machine, and return the tables with the scores on them.

        Where the profile of this machine is named, nothing is measured: what was kept is scored.
        """
        refuse_other_devices(setting, self.paper.name)
        machine = machine_of(PROCESSOR)
        if setting.profile is None:
            _measure_here(machine, setting)
        else:
            require_own(setting.profile.name, machine)
        own = setting.profile or calibrated_profile(machine)
        graphs = [matrix for matrix in setting.matrices if _graph_name(str(matrix))]
        return self.from_records(own, replace(setting, matrices=graphs))

    def from_records(self, profile: Profile, setting: ExperimentSetting) -> PaperReport:
        refuse_other_devices(setting, self.paper.name)
        if profile.machine.published_as == CLUSTER:
            return self._published(setting)
        fits = count()
        scores = replay_ranks(
            profile, on_fold=lambda: setting.on_progress(next(fits), cluster_fits(), "models of ranks")
        )
        report = self._published(setting)
        errors = [f"{name} {score.mean_error:.1%}" for name, score in scores.models.items()]
        return replace(
            report,
            machine=profile.name,
            tables=(ranks_table(scores), scores.table(), *report.tables),
            ours=f"mean errors of products on its ranks: {', '.join(errors)}" if errors else "",
        )

    def _published(self, setting: ExperimentSetting) -> PaperReport:
        cluster, at_hand, done = find_profile(CLUSTER), _graphs(setting.matrices), count()
        names, of_rmat = (published("hossain_saule")[kind] for kind in ("matrices", "rmat"))
        rows = compared_times(
            cluster,
            _question_of(at_hand, cluster),
            lambda matrix: setting.on_progress(next(done), len(names) + len(of_rmat), matrix),
        )
        right, cases = fastest_named(rows)
        scored = [row for row in summaries(rows) if row["table"] in MEASURED]
        errors = [row["ours_error"] for row in scored]
        behind = [
            f"sparsecast is behind the paper on {row['algorithm']} in {row['format'].upper()}: "
            f"{row['ours_error']:.1%} against {row['paper_error']:.1%}."
            for row in scored
            if row["ours_error"] > row["paper_error"]
        ]
        fastest = f"sparsecast names the fastest algorithm in {right} of {cases} cases."
        notes = [*self.paper.notes, fastest, *behind]
        if missing := ", ".join(name for name in names if name not in at_hand):
            notes.append(f"Local 1D took {missing} for meshes: name suitesparse:DIMACS10/NAME to partition.")
        made = {name: graph for name, graph in at_hand.items() if graph.name.startswith(GALLERY_PREFIX)}
        if alike := [f"{name} ({graph.name})" for name, graph in made.items()]:
            notes.append(f"Graphs alike were partitioned with METIS: {', '.join(alike)}.")
        return PaperReport(
            self.paper,
            f"{CLUSTER}, published figures",
            tables(rows),
            {"hossain-saule": chart(rows)},
            tuple(notes),
            f"mean errors of {min(errors):.1%} to {max(errors):.1%} by sparsecast on tables II to VII",
        )


def _graph_name(matrix: str) -> str | None:
    """Return the paper's graph that a matrix is called like, or that one of the gallery has the rows of."""
    known = published("hossain_saule")["matrices"]
    if matrix.startswith(GALLERY_PREFIX):
        _, values = split_specification(matrix.removeprefix(GALLERY_PREFIX), "integer", "delaunay?n=3712815")
        return next((name for name, counts in known.items() if str(counts["rows"]) == values.get("n")), None)
    stem = Path(matrix).name.split(".")[0]
    return stem if stem in known else None


def _graphs(matrices: Sequence[str | Path]) -> Mapping[str, Problem]:
    """Return the graphs of the paper among some matrices, by name; an InputError names another one."""
    graphs, known = {}, published("hossain_saule")["matrices"]
    for text in map(str, matrices):
        name = _graph_name(text)
        if name is None:
            raise InputError(f"{text}: expected one of the paper's graphs, {', '.join(known)}; name it")
        graphs[name] = Problem.named(text)
        A, rows, nnz = graphs[name].matrix, known[name]["rows"], known[name]["nnz"]
        if not text.startswith(GALLERY_PREFIX) and (A.shape[0], A.nnz) != (rows, nnz):
            raise InputError(
                f"{text} of {A.shape[0]:,} rows and {A.nnz:,} non-zeros: expected {rows:,} and {nnz:,} as "
                f"{name} has; name that file"
            )
    return graphs


def _question_of(graphs: Mapping[str, Problem], profile: Profile) -> QuestionOf:
    @cache
    def question(time: PublishedTime) -> Question:
        if time.matrix not in graphs:
            return time.question
        A, way = graphs[time.matrix].matrix, time.configuration
        parts = partition(A, way.ranks, way.partition)
        product = PRODUCTS.get(way.algorithm)
        return cluster_problem(graphs[time.matrix], profile).question(product, distribute(A, parts), parts)

    return question


def _measure_here(machine: Machine, setting: ExperimentSetting) -> None:
    """Measure the random matrices of the paper, then the matrices of the setting, in CSR and COO.

    One rank for each core, and the largest square of ranks, which 2D takes. The first matrix is measured in
    any case; a later run goes on with what is left.
    """
    counts = sorted({machine.cores, isqrt(machine.cores) ** 2} - {1})
    if not counts:
        raise InputError("1 core: expected two at least, for two ranks; take published figures by --from")
    if setting.budget_s < LEAST_BUDGET_S:
        raise InputError(
            f"budget {setting.budget_s:g} s: expected at least {LEAST_BUDGET_S:g} s; raise the budget"
        )
    matrices = {str(matrix): Problem.named(matrix).specification for matrix in setting.matrices or MATRICES}
    start_s, calibrating_s = time.monotonic(), CALIBRATING * setting.budget_s / len(counts)
    for ranks in counts:
        calibrate = ("calibrate", "--ranks", "--suites", "hossain", "--budget", f"{calibrating_s:g}")
        _on_ranks(ranks, calibrate, setting, start_s)
    for ranks in counts:
        before = {r.matrix for r in kept(machine).distributed if r.configuration.ranks == ranks}
        is_square = isqrt(ranks) ** 2 == ranks
        algorithms = ",".join(name for name in ALGORITHMS_OF_THE_PAPER if is_square or name != "2d")
        for place, (matrix, specification) in enumerate(matrices.items()):
            is_over = time.monotonic() - start_s > MEASURING * setting.budget_s
            if (not is_over or place == 0) and specification not in before:
                ways = ("--algorithm", algorithms, "--format", ",".join(FORMATS_OF_THE_PAPER))
                _on_ranks(ranks, ("measure", matrix, *ways), setting, start_s)


def _on_ranks(ranks: int, arguments: tuple[str, ...], setting: ExperimentSetting, start_s: float) -> None:
    """Run a command of ours on ranks; what it refuses is raised here."""
    ours = [sys.executable, "-c", "from sparsecast.cli.main import main; main()", *arguments]
    with subprocess.Popen(
        [_mpirun(), "-n", str(ranks), *ours],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        complaints = None
        while complaints is None:
            used_s = time.monotonic() - start_s
            try:
                setting.on_progress(used_s, max(setting.budget_s, used_s), f"{arguments[0]} on {ranks} ranks")
                complaints = run.communicate(timeout=_PAUSE_S)[1]
            except subprocess.TimeoutExpired:
                continue
            except BaseException:
                run.terminate()  # mpirun ends its ranks
                raise
    if run.returncode:
        lines = [line for line in complaints.splitlines() if line.strip()]
        reason = lines[0] if lines else f"exit status {run.returncode}"
        raise InputError(f"mpirun -n {ranks} sparsecast {' '.join(arguments)}: {reason}")


def _mpirun() -> str:
    """Return the mpirun next to this Python, or else on the path."""
    remedy = "take published figures by --from xeon-gold-6154-edr"
    if started_ranks() > 1:
        raise MpiError(
            f"hossain-saule under mpirun, on {started_ranks()} ranks: expected one process, which starts "
            f"ranks itself; leave mpirun out, or {remedy}"
        )
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    mpirun = shutil.which("mpirun", path=path)
    if mpirun is None or importlib.util.find_spec("mpi4py") is None:
        raise MpiError(
            f"{'mpi4py' if mpirun else 'mpirun'} is missing: expected it for products on ranks; pip install "
            f"'sparsecast[mpi]', or {remedy}"
        )
    return mpirun


def tables(rows: Sequence[ComparedTime]) -> tuple[Table, ...]:
    """Return the mean errors of all tables, those of each graph, and the R-MAT matrices of table XI."""
    graphs, rmat = [], []
    ways = grouped(
        rows, lambda row: (row.published.table == "XI", row.published.matrix, *row.published.key[1:])
    )
    for (is_rmat, matrix, algorithm, name), own in ways.items():
        way: dict[str, Any] = {"matrix": matrix, "algorithm": algorithm, "format": name}
        if is_rmat:
            [row] = own
            times_s = {"paper_s": row.published.predicted_s, "ours_s": row.forecasts_s["ours"]}
            errors = {"paper_error": row.paper_error, "ours_error": row.error("ours")}
            rmat.append({**way, "actual_s": row.actual_s, **times_s, **errors})
            continue
        papers = grouped(own, lambda row: PAPER_MODELS[row.published.table])
        way["most_s"] = max(own, key=lambda row: row.published.configuration.ranks).actual_s
        way |= dict.fromkeys(PAPER_MODELS.values())
        way |= {kind: fmean(row.paper_error for row in of_kind) for kind, of_kind in papers.items()}
        for model in ("micro", "ours"):
            way[f"{model}_error"] = known_mean(row.error(model) for row in own)
        graphs.append(way)
    means = [
        {**row, "paper_model": PAPER_MODELS[row["table"]], "table": PAIRED.get(row["table"], row["table"])}
        for row in summaries(rows)
    ]
    return (
        Table("Tables II to XI: mean errors", SUMMARY, _side_by_side(means)),
        Table(
            "Tables II to X by graph: mean errors over the numbers of ranks", BY_GRAPH, _side_by_side(graphs)
        ),
        Table("Table XI: regression on R-MAT matrices, 225 ranks", OF_RMAT, _side_by_side(rmat)),
    )


def _side_by_side(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each algorithm and what else rows differ in, with the values of each format."""
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        shared = {key: row[key] for key in ("table", "matrix", "algorithm", *SHARED) if key in row}
        into = merged.setdefault(tuple(shared.values()), shared)
        into |= {f"{row['format']}_{key}": value for key, value in row.items() if key not in shared}
    none = dict.fromkeys(key for row in merged.values() for key in row)
    return [none | row for row in merged.values()]


def ranks_table(scores: ClusterEvaluation) -> Table:
    """Return the mean errors on products of matrices that no line is learned from, next to the paper's."""
    printed = grouped(published_times(), lambda time: (PAPER_MODELS[time.table], *time.key[1:]))
    of_papers = [
        row
        for row in scores.rows
        if row.record.suite != SUITE and row.record.configuration.algorithm in ALGORITHMS_OF_THE_PAPER
    ]
    names = ("algorithm", "ranks", "format")
    groups = grouped(
        of_papers, lambda row: (*(getattr(row.record.configuration, name) for name in names), row.model)
    )
    rows = []
    for (algorithm, ranks, name, model), own in sorted(groups.items()):
        kind = MODEL_KINDS.get(model.removesuffix(" (as printed)"), "")
        paper = known_mean(time.error for time in printed.get((kind, algorithm, name), ()))
        row = {"algorithm": algorithm, "format": name, "ranks": ranks, "model": model, "paper": paper}
        rows.append({**row, "products": len(own), "error": fmean(row.error for row in own)})
    refused = {what: why for what, why in scores.refused.items() if "local-1d-overlap" not in what}
    title = f"Products on ranks of {scores.profile}: mean errors"
    return Table(title, ON_RANKS, _side_by_side(rows), lines_of(refused))


def chart(rows: Sequence[ComparedTime]) -> Chart:
    """Return times over ranks, a panel for each algorithm and graph: lines of forecasts, measured points."""
    measured = [row for row in rows if row.published.table in MEASURED]
    cases = grouped(measured, lambda row: (row.published.configuration.algorithm, row.published.matrix))
    drawn = []
    for (algorithm, matrix), own in sorted(cases.items()):
        points: list[dict[str, Any]] = []
        for row in own:
            way = row.published.configuration
            times_s = (row.forecasts_s["ours"], row.published.predicted_s, row.actual_s)
            points += [
                {"ranks": way.ranks, "time_s": time_s, "format": way.format.upper(), "of": shown}
                for shown, time_s in zip((*_FORECASTS, "measured"), times_s, strict=True)
            ]
        encoding = {
            "x": counts_axis("ranks", "ranks", [point["ranks"] for point in points]),
            "y": axis("time_s", "one product", [point["time_s"] for point in points], "s"),
            "color": {**format_look({point["format"] for point in points})["color"], "title": "measured"},
        }
        dashes = {"domain": _FORECASTS, "range": [[1, 0], [2, 3]]}
        dash = {"field": "of", "type": "nominal", "title": "forecast", "scale": dashes}
        forecast = [point for point in points if point["of"] in _FORECASTS]
        lines = layer("line", {**encoding, "strokeDash": dash}, forecast)
        marks = layer("point", encoding, [point for point in points if point["of"] == "measured"])
        drawn.append(Chart("times", f"{algorithm}, {matrix}", {"layer": [lines, marks], **_SIZE}))
    return panels("hossain-saule", "", drawn, len({matrix for _, matrix in cases}))
