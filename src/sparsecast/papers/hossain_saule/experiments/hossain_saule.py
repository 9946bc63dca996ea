"""`sparsecast paper hossain-saule`: tables II to XI, and the models on what ranks of this machine measured.

The cluster is the shipped profile of published figures, with the inputs that `fitted_inputs` finds. No rank
is started: `mpirun -n N sparsecast calibrate --ranks --suites hossain` and `mpirun -n N sparsecast measure
MATRIX` measure products here, and their models are scored next to the tables. A graph of the paper that is
named as a matrix is partitioned with METIS; of the others counts are known, and local 1D takes them for
meshes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from sparsecast.api.cluster_evaluating import replay_ranks
from sparsecast.api.cluster_questions import cluster_problem
from sparsecast.benchmark.experiments import EXPERIMENTS, Experiment, Setting
from sparsecast.benchmark.journal import kept_distributed
from sparsecast.devices.naming import machine_of
from sparsecast.distributed.products import PRODUCTS
from sparsecast.errors import InputError
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile, find_profile, user_path
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.methods import partition
from sparsecast.matrices.problem import Problem
from sparsecast.models.clusters.cluster_model import Question
from sparsecast.papers import published
from sparsecast.papers.hossain_saule.comparison import MEASURED, compared_times, fastest_named, summaries
from sparsecast.papers.hossain_saule.fitted_inputs import QuestionOf
from sparsecast.papers.hossain_saule.published_times import PublishedTime
from sparsecast.papers.hossain_saule.tables import chart, tables
from sparsecast.results.paper import Paper, PaperItem, PaperReport
from sparsecast.system.tabular import Table, lines_of

#: The paper's cluster.
CLUSTER = "xeon-gold-6154-edr"

MEASURE = "`mpirun -n N sparsecast calibrate --ranks --suites hossain`"

ITEMS = (
    PaperItem("III.A linear model (VIII, IX)", "done", f"on ranks that measured random matrices: {MEASURE}"),
    PaperItem("III.B regression (X, XI)", "done", "all nine features; C, gamma and folds as printed"),
    PaperItem(
        "III.C model from micro-benchmarks (II to VII)", "done", "compared with the paper's own forecasts"
    ),
    PaperItem(
        "Table I, accesses of arrays", "differs", "as printed in the model; our COO writes y once a row"
    ),
    PaperItem("III.C.1.c, LRU", "done", "on the entries where the matrix is named, else a formula of counts"),
    PaperItem(
        "Fig. 2 and 3, STREAM, messages", "cannot be had here", "no numbers are printed: see the notes"
    ),
    PaperItem("II.B, 2D uniform", "differs", "the last blocks are shorter instead of padded with zeros"),
    PaperItem("II.B, METIS", "done", "for graphs that are named as matrices; else meshes of their counts"),
    PaperItem(
        "Tables VIII to XI, our lines and regression", "cannot be had here", "they need 144 to 256 ranks"
    ),
    PaperItem("IV.B, 90 matrices to train with", "cannot be had here", "they are not named"),
    PaperItem(
        "Table XI, R-MAT", "differs", "gallery:rmat has any rows and edges; its chances are not stated"
    ),
    PaperItem("Table XII", "differs", "left out: it contradicts tables II to VII and X"),
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
        """Return the tables, and the scores on what was kept of this machine's ranks."""
        machine = machine_of(PROCESSOR)
        path = user_path(machine.name)
        own = setting.profile or (Profile.load_own(path, machine) if path.exists() else None)
        if own is None or not kept_distributed(own.machine):
            note = f"No products on ranks were kept of this machine: measure some by {MEASURE}."
            return self._report(setting, [], note)
        return self.from_records(own, setting)

    def from_records(self, profile: Profile, setting: Setting) -> PaperReport:
        """Return the tables, and the scores on what was kept of a machine's ranks."""
        if profile.machine.published_as == CLUSTER:
            return self._report(setting, [], "Of the paper's cluster nothing was measured by us.")
        scores = replay_ranks(profile)
        scored = scores.table()
        own = replace(scored, below=(*scored.below, *lines_of(scores.refused)))
        return self._report(setting, [own], f"Products on ranks of {profile.name} were scored, too.")

    def _report(self, setting: Setting, own: Sequence[Table], note: str) -> PaperReport:
        if setting.device != PROCESSOR or setting.dtype not in (None, "float64"):
            raise InputError(
                f"device '{setting.device}' and type '{setting.dtype or 'float64'}' for hossain-saule: "
                f"expected cpu and float64, which its ranks compute with; leave them out"
            )
        cluster = find_profile(CLUSTER)
        at_hand = _graphs(setting.matrices)
        done = iter(range(10**6))
        rows = compared_times(
            cluster,
            _question_of(at_hand, cluster),
            lambda matrix: setting.on_progress(
                next(done), len(published("hossain_saule")["matrices"]) + 1, matrix
            ),
        )
        right, cases = fastest_named(rows, lambda row: row.ours_s)
        missing = [name for name in published("hossain_saule")["matrices"] if name not in at_hand]
        notes = [
            "hossain-micro has inputs that the paper does not print, found from one table each: bandwidth "
            "and time of a call from IV and V, Reduce and Bcast from II, Allgatherv from VI. Tables III and "
            "VII check them.",
            "sparsecast, other matrices known: fitted to the paper's times of the other matrices; of table "
            "XI to those of all graphs, which are of another kind. Nothing known: from published "
            "figures alone.",
            f"sparsecast names the fastest algorithm in {right} of {cases} cases.",
            note,
        ]
        if missing:
            notes.append(
                f"Local 1D took {', '.join(missing)} for meshes: name suitesparse:DIMACS10/NAME to partition."
            )
        errors = [s.ours_error for s in summaries(rows) if s.table in MEASURED]
        return PaperReport(
            self.paper,
            f"{CLUSTER}, published figures",
            (*tables(rows), *own),
            ITEMS,
            {"hossain-saule": chart(rows)},
            tuple(notes),
            f"mean errors of {min(errors):.1%} to {max(errors):.1%} by sparsecast on tables II to VII",
        )


def _graphs(matrices: Sequence[str | Path]) -> Mapping[str, Problem]:
    """Return the graphs of the paper among some matrices, by name; an InputError names another one."""
    graphs, known = {}, published("hossain_saule")["matrices"]
    for text in map(str, matrices):
        name = next((name for name in known if Path(text).name.split(".")[0] == name), None)
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
