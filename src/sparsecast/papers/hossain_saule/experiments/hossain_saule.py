"""`sparsecast paper hossain-saule`: tables II to XI, and the models on what ranks of this machine measured.

The cluster is the shipped profile of published figures, with the inputs that `fitted_inputs` finds. Products
on the ranks of this machine are measured by `rank_runs`; with `--from` no rank is started. A graph of the
paper that is named as a matrix is partitioned with METIS; of the others counts are known, and local 1D takes
them for meshes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path

from sparsecast.api.cluster_evaluating import cluster_fits, replay_ranks
from sparsecast.api.cluster_questions import cluster_problem
from sparsecast.api.profiles import calibrated_profile, require_own
from sparsecast.benchmark.experiments import EXPERIMENTS, Experiment, Setting, refuse_other_devices
from sparsecast.devices.naming import machine_of
from sparsecast.distributed.products import PRODUCTS
from sparsecast.errors import InputError
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.methods import partition
from sparsecast.matrices.problem import Problem
from sparsecast.models.clusters.cluster_model import Question
from sparsecast.papers import published
from sparsecast.papers.hossain_saule.comparison import MEASURED, compared_times, fastest_named, summaries
from sparsecast.papers.hossain_saule.fitted_inputs import QuestionOf
from sparsecast.papers.hossain_saule.published_times import PublishedTime
from sparsecast.papers.hossain_saule.rank_runs import measure_here
from sparsecast.papers.hossain_saule.tables import chart, ranks_table, tables
from sparsecast.results.paper import Paper, PaperItem, PaperReport

#: The paper's cluster.
CLUSTER = "xeon-gold-6154-edr"

ITEMS = (
    PaperItem(
        "III.A linear model (VIII, IX)",
        "done",
        "on ranks that measured random matrices; 2D needs a square of ranks, each with a core",
    ),
    PaperItem(
        "III.B regression (X, XI)", "done", "all nine features, on ranks too; C, gamma and folds as printed"
    ),
    PaperItem(
        "III.C model from micro-benchmarks (II to VII)", "done", "compared with the paper's own forecasts"
    ),
    PaperItem(
        "III, as printed", "done", "each model is scored so, too, here and by evaluate --replay --ranks"
    ),
    PaperItem(
        "Table I, accesses of arrays", "differs", "as printed in the model; our COO writes y once a row"
    ),
    PaperItem("III.C.1.c, LRU", "done", "on the entries where the matrix is named, else a formula of counts"),
    PaperItem(
        "Fig. 2, STREAM", "differs", "its triad here, in float64 as STREAM has it; no numbers are printed"
    ),
    PaperItem("Fig. 3, messages", "cannot be had here", "no numbers are printed: see the notes"),
    PaperItem(
        "II.B, 2D uniform",
        "differs",
        "the last blocks are shorter: padding would add zeros to vectors, and no entry",
    ),
    PaperItem("II.B, METIS", "done", "for graphs that are named as matrices; else meshes of their counts"),
    PaperItem(
        "Tables VIII to XI, our lines and regression",
        "cannot be had here",
        "on the paper's matrices they need 144 to 256 ranks; scored on the ranks of this machine",
    ),
    PaperItem("IV.B, 90 matrices to train with", "cannot be had here", "they are not named"),
    PaperItem(
        "Table XI, R-MAT",
        "differs",
        "forecast from counts; gallery:rmat has any rows and edges, but its chances are not stated",
    ),
    PaperItem("Table XII", "differs", "left out: it contradicts tables II to VII and X"),
)

NOTES = (
    f"Tables II to XI are of the paper's cluster, {CLUSTER}.",
    "hossain-micro has inputs that the paper does not print, found from one table each: bandwidth and time "
    "of a call from IV and V, Reduce and Bcast from II, Allgatherv from VI. Tables III and VII check them.",
    "sparsecast, other matrices known: fitted to the paper's times of the other graphs, in table XI of the "
    "other R-MAT matrices. Nothing known: from published figures alone. Factors of the graphs are no use in "
    "table XI: their messages are short, and a factor that mends these multiplies megabytes of R-MAT.",
    "Forecasts of local 1D fall faster with the ranks than the paper's times: bytes of a rank fall, and "
    "fewer ranks of a node share its memory. Calls as a term of their own, a time that is the same "
    "on all ranks, and a fit without the pull to a common factor took them no closer.",
)


@EXPERIMENTS.register("hossain-saule")
class HossainSaule(Experiment):
    """Tables II to XI next to ours."""

    paper = Paper(
        name="hossain-saule",
        authors="M. M. Hossain, E. Saule",
        title="Performance model of iterated SpMV for distributed system",
        forecasts="products on 144 to 256 ranks: 2D, global and local 1D, in CSR and COO",
        headline=(
            "mean errors of {II:.1%} to {VII:.1%} by micro-benchmarks, {VIII:.1%} and {IX:.1%} by lines"
        ).format(**published("hossain_saule")["mean_errors"]),
        never_run="its cluster of 8 nodes, so its lines and regressions have no measured products",
    )

    def run(self, setting: Setting) -> PaperReport:
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

    def from_records(self, profile: Profile, setting: Setting) -> PaperReport:
        """Return the tables, and the scores on what was kept of a machine's ranks."""
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

    def _published(self, setting: Setting) -> PaperReport:
        """Return the tables of the paper, whose cluster is known from published figures."""
        cluster = find_profile(CLUSTER)
        at_hand = _graphs(setting.matrices)
        names, of_rmat = (published("hossain_saule")[kind] for kind in ("matrices", "rmat"))
        done = count()
        rows = compared_times(
            cluster,
            _question_of(at_hand, cluster),
            lambda matrix: setting.on_progress(next(done), len(names) + len(of_rmat), matrix),
        )
        right, cases = fastest_named(rows)
        missing = [name for name in names if name not in at_hand]
        meshes = (
            f"Local 1D took {', '.join(missing)} for meshes: name suitesparse:DIMACS10/NAME to partition."
        )
        scored = [row for row in summaries(rows) if row["table"] in MEASURED]
        errors = [row["ours_error"] for row in scored]
        behind = [
            f"sparsecast is behind the paper on {row['algorithm']} in {row['format'].upper()}: "
            f"{row['ours_error']:.1%} against {row['paper_error']:.1%}."
            for row in scored
            if row["ours_error"] > row["paper_error"]
        ]
        return PaperReport(
            self.paper,
            f"{CLUSTER}, published figures",
            tables(rows),
            ITEMS,
            {"hossain-saule": chart(rows)},
            (
                *NOTES,
                f"sparsecast names the fastest algorithm in {right} of {cases} cases.",
                *behind,
                *([meshes] if missing else []),
            ),
            f"mean errors of {min(errors):.1%} to {max(errors):.1%} by sparsecast on tables II to VII",
        )


def _graph_name(matrix: str) -> str | None:
    """Return the name of the paper's graph that a matrix is called like."""
    stem = Path(matrix).name.split(".")[0]
    return stem if stem in published("hossain_saule")["matrices"] else None


def _graphs(matrices: Sequence[str | Path]) -> Mapping[str, Problem]:
    """Return the graphs of the paper among some matrices, by name; an InputError names another one."""
    graphs, known = {}, published("hossain_saule")["matrices"]
    for text in map(str, matrices):
        name = _graph_name(text)
        if name is None:
            raise InputError(f"{text}: expected one of the paper's graphs, {', '.join(known)}; name it")
        problem = Problem.named(text)
        counts = problem.matrix.shape[0], int(problem.matrix.nnz)
        if counts != (known[name]["rows"], known[name]["nnz"]):
            raise InputError(
                f"{text} of {counts[0]:,} rows and {counts[1]:,} non-zeros: expected {known[name]['rows']:,} "
                f"and {known[name]['nnz']:,} as {name} has; name that file"
            )
        graphs[name] = problem
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
