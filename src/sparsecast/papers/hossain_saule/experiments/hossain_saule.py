"""`sparsecast paper hossain-saule`: tables II to XI, and the models on what ranks of this machine measured.

The cluster is the shipped profile of published figures, with the inputs that `fitted_inputs` finds. Ranks
of this machine, one on each core, measure random matrices once, as `mpirun -n N sparsecast calibrate --ranks
--suites hossain` does, and their models are scored next to the tables. A graph of the paper that is
named as a matrix is partitioned with METIS; of the others counts are known, and local 1D takes them for
meshes.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import perf_counter

from sparsecast.api.cluster_evaluating import replay_ranks
from sparsecast.api.cluster_questions import cluster_problem
from sparsecast.api.profiles import calibrated_profile, require_own
from sparsecast.benchmark.experiments import EXPERIMENTS, Experiment, Setting
from sparsecast.benchmark.journal import kept_distributed
from sparsecast.devices.naming import machine_of
from sparsecast.distributed.products import PRODUCTS
from sparsecast.errors import InputError, RanksError
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
from sparsecast.papers.hossain_saule.tables import chart, tables
from sparsecast.results.paper import Paper, PaperItem, PaperReport
from sparsecast.system.tabular import Table, lines_of

#: The paper's cluster.
CLUSTER = "xeon-gold-6154-edr"

#: Of the budget, what ranks may take; and the most of them.
RANKS_SHARE, MOST_RANKS = 0.6, 16

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
        "Table XI, R-MAT", "differs", "its chances are not stated; all models learned on meshes are far off"
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
        """Let ranks measure random matrices here, unless they did, and score the models on them."""
        _refuse(setting)
        _graphs(setting.matrices)  # what is no graph of the paper is refused before ranks are started
        machine = machine_of(PROCESSOR)
        if setting.profile is not None:
            require_own(setting.profile.name, machine)
        profile = setting.profile or calibrated_profile(machine)
        if not kept_distributed(profile.machine):
            if why := _why_no_ranks():
                return self._report(setting, [], f"No rank was started here: {why}.")
            _measure_on_ranks(setting)
            profile = calibrated_profile(machine)
        return self.from_records(profile, setting)

    def from_records(self, profile: Profile, setting: Setting) -> PaperReport:
        """Return the tables, and the scores on what was kept of a machine's ranks."""
        if profile.machine.published_as == CLUSTER:
            return self._report(setting, [], "Of the paper's cluster nothing was measured by us.")
        scores = replay_ranks(profile)
        scored = scores.table()
        own = replace(scored, below=(*scored.below, *lines_of(scores.refused)))
        return self._report(setting, [own], f"Products on ranks of {profile.name} were scored, too.")

    def _report(self, setting: Setting, own: Sequence[Table], note: str) -> PaperReport:
        _refuse(setting)
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
        scored = [s for s in summaries(rows) if s.table in MEASURED]
        errors = [s.ours_error for s in scored]
        notes += [
            f"sparsecast is behind the paper on {s.algorithm} in {s.format.upper()}: {s.ours_error:.1%} "
            f"against {s.paper_error:.1%}."
            for s in scored
            if s.ours_error > s.paper_error
        ]
        return PaperReport(
            self.paper,
            f"{CLUSTER}, published figures",
            (*tables(rows), *own),
            ITEMS,
            {"hossain-saule": chart(rows)},
            tuple(notes),
            f"mean errors of {min(errors):.1%} to {max(errors):.1%} by sparsecast on tables II to VII",
        )


def _refuse(setting: Setting) -> None:
    if setting.device != PROCESSOR or setting.dtype not in (None, "float64"):
        raise InputError(
            f"device '{setting.device}' and type '{setting.dtype or 'float64'}' for hossain-saule: expected "
            f"cpu and float64, which its ranks compute with; leave them out"
        )


def _mpirun() -> str | None:
    """Return the mpirun of this Python's environment, or else that on the path."""
    folders = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return shutil.which("mpirun", path=folders)


def _why_no_ranks() -> str:
    if importlib.util.find_spec("mpi4py") is None or _mpirun() is None:
        return "mpi4py or mpirun is missing; pip install 'sparsecast[mpi]'"
    return ""


def _measure_on_ranks(setting: Setting) -> None:
    """Start ranks, one on each core, that calibrate and measure; a RanksError says why they fail."""
    start_s, cores = perf_counter(), min(MOST_RANKS, os.cpu_count() or 1)
    budget_s = RANKS_SHARE * setting.budget_s
    code = "from sparsecast.cli.main import main; main()"
    asked = "calibrate", "--ranks", "--suites", "hossain", "--budget", f"{budget_s:g}", "--json"
    line = [str(_mpirun()), "-n", str(cores), sys.executable, "-c", code, *asked]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as ranks:
        while True:
            try:
                _, said = ranks.communicate(timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                setting.on_progress(perf_counter() - start_s, setting.budget_s, f"{cores} ranks")
    if ranks.returncode:
        raise RanksError(
            f"{cores} ranks ended with status {ranks.returncode} ({' '.join(said.split())[-200:]}): expected "
            f"them to measure; see sparsecast doctor"
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
