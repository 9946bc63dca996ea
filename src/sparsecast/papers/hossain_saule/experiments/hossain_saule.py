"""`sparsecast paper hossain-saule`: tables II to XI, and the models on what ranks of this machine measured.

The cluster is the shipped profile of published figures, with the inputs that `fitted_inputs` finds. Products
on the ranks of this machine are measured by `rank_runs`; with `--from` no rank is started. A graph of the
paper that is named as a matrix is partitioned with METIS, and so is a graph of the gallery with as many rows,
such as `gallery:delaunay?n=3712815` for 333SP; of the others counts are known, and local 1D takes them for
meshes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path

from sparsecast.api.clustering import cluster_problem
from sparsecast.api.evaluating import cluster_fits, replay_ranks
from sparsecast.api.profiles import calibrated_profile, require_own
from sparsecast.benchmark.experiments import EXPERIMENTS, Experiment, ExperimentSetting, refuse_other_devices
from sparsecast.devices import machine_of
from sparsecast.distributed.products import PRODUCTS
from sparsecast.errors import InputError
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.matrices.families import split_specification
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.methods import partition
from sparsecast.matrices.problem import GALLERY_PREFIX, Problem
from sparsecast.models.clusters.cluster_model import Question
from sparsecast.papers import described, published
from sparsecast.papers.hossain_saule.comparison import (
    MEASURED,
    QuestionOf,
    compared_times,
    fastest_named,
    summaries,
)
from sparsecast.papers.hossain_saule.published_times import PublishedTime
from sparsecast.papers.hossain_saule.rank_runs import measure_here
from sparsecast.papers.hossain_saule.tables import chart, ranks_table, tables
from sparsecast.results.paper import PaperReport

#: The paper's cluster.
CLUSTER = "xeon-gold-6154-edr"


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
            measure_here(machine, setting)
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
