"""`sparsecast paper gahvari-2007 [FOLDER...]`: four figures, and real matrices next to them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from sparsecast.api.profiles import calibrated_profile, require_own
from sparsecast.benchmark.experiments import EXPERIMENTS, Experiment, ExperimentSetting
from sparsecast.benchmark.journal import read_journal
from sparsecast.devices import machine_of
from sparsecast.errors import InputError
from sparsecast.formats.bcsr import BLOCK_SIDES
from sparsecast.machines.profile import Profile
from sparsecast.matrices.atlas import atlas
from sparsecast.matrices.problem import TWIN_PREFIX
from sparsecast.matrices.reading import collected
from sparsecast.papers import described, published
from sparsecast.papers.gahvari_2007 import bench_charts
from sparsecast.papers.gahvari_2007.bench_reports import rating_tables, real_tables, sentence_of
from sparsecast.papers.gahvari_2007.real_matrices import (
    RealMatrices,
    groups_done,
    is_generated,
    real_journal,
    real_matrices,
    rows_of,
)
from sparsecast.papers.gahvari_2007.search_space import SIZES
from sparsecast.papers.gahvari_2007.suite import bench
from sparsecast.papers.gahvari_2007.summary import LEAST_BUDGET_S, notes, rated
from sparsecast.results.paper import PaperReport
from sparsecast.system.tabular import Column, Table
from sparsecast.system.texts import percent

#: Of the budget, what the benchmark takes where this machine has no figures yet; real matrices take the rest.
BENCH_SHARE = 0.5

#: Matrices by default: of the gallery, with 20 to 300 MB of values and columns, and twins of real ones.
BEYOND_CACHES = (
    "gallery:poisson2d?n=700",
    "gallery:banded?n=400000&half_bandwidth=4",
    "gallery:elasticity3d?n=30",
    "gallery:random?n=500000&nnz_per_row=8",
    "gallery:poisson3d?n=60&points=27",
    "gallery:circuit?n=1000000",
    "gallery:rmat?scale=18&degree=12",
    "gallery:poisson3d?n=100&points=7",
    "gallery:poisson2d?n=1500",
    "gallery:banded?n=600000&half_bandwidth=10",
    "gallery:elasticity3d?n=40",
    "gallery:poisson3d?n=90&points=27",
)
TWINS, TWIN_ENTRIES = 24, 60_000

SPACE = (Column("quantity", "search space"), Column("paper", "the paper"), Column("ours", "ours"))


@EXPERIMENTS.register("gahvari-2007")
class Gahvari2007(Experiment):
    """The four figures, and how they forecast real matrices."""

    paper = described("gahvari_2007")

    def run(self, setting: ExperimentSetting) -> PaperReport:
        """Rate this machine if it has no figures, then measure the matrices."""
        machine, files = machine_of(setting.device), collected(setting.matrices or self.default_matrices())
        if setting.profile is not None:
            require_own(setting.profile.name, machine)
        dtype, used_s = setting.dtype or "float64", 0.0

        def on_progress(done_s: float, _: float, name: str) -> None:
            setting.on_progress(used_s + done_s, setting.budget_s, name)

        figures, profile = None, setting.profile or calibrated_profile(machine)
        with suppress(InputError):  # where there are none
            figures = rated(profile, dtype)
        if figures is None or figures.noise is None:  # noise is measured last: that run was stopped
            bench_s = BENCH_SHARE * setting.budget_s
            if bench_s < LEAST_BUDGET_S:
                raise InputError(
                    f"budget {setting.budget_s:g} s: expected at least {LEAST_BUDGET_S / BENCH_SHARE:g} "
                    f"where no figures are kept; raise it"
                )
            result = bench(bench_s, threads=1, dtype=dtype, device=setting.device, on_progress=on_progress)
            figures, used_s = rated(calibrated_profile(machine), dtype), bench_s
            if result.interrupted:
                return self._report(RealMatrices(figures, (), {}, len(files), True))
        return self._report(real_matrices(files, figures, max(1.0, setting.budget_s - used_s), on_progress))

    def default_matrices(self) -> Sequence[str]:
        """Return generated matrices beyond usual caches, which Table IV has, and twins of real ones."""
        twins = atlas().twins(lambda found: found.nnz >= TWIN_ENTRIES)
        return (*BEYOND_CACHES, *islice(twins, TWINS))

    def from_records(self, profile: Profile, setting: ExperimentSetting) -> PaperReport:
        """Take the figures of a profile, and the real matrices that were measured on its machine."""
        figures = rated(profile, setting.dtype)
        kept = read_journal(real_journal(profile.machine))
        whole = [
            name
            for name in kept.matrices
            if not name.startswith(TWIN_PREFIX)
            and groups_done(name, figures, kept.records) >= len(BLOCK_SIDES)
        ]
        return self._report(RealMatrices(figures, rows_of(kept, whole, figures), {}, 0, False))

    def _report(self, measured: RealMatrices) -> PaperReport:
        figures, numbers = measured.rating, published("gahvari_2007")
        space, cut, real = numbers["search_space"], numbers["cut"], numbers["matrices"]["real"]
        series = {point.series for point in figures.speeds if not point.series.is_symmetric}
        generated, measured_until = sum(map(is_generated, measured.rows)), figures.largest_dimension
        quantities = (
            ("largest dimension", space["largest_dimension"], figures.range_end),
            ("largest dimension measured in five minutes", cut["largest_dimension"], measured_until),
            ("block sizes", space["block_sizes"], len(series)),
            ("real matrices", real, len(measured.rows) - generated),
            ("generated ones, and twins of real ones", None, generated),
            *((f"{size} synthetic ones", None, figures.sizes.get(size)) for size in SIZES),
        )
        remarks = notes([figures])
        if not measured.rows:
            remarks.append("No matrices are measured yet: run without --from, again if need be.")
        elif all(score["twin"] == "again" for score in measured.twins):
            remarks.append("No twins are measured yet, so Figures 8 to 10 are missing: run again to go on.")
        if measured.interrupted:
            remarks.append("Stopped: run again to go on.")
        tables = [
            *rating_tables("The figures, MFLOP/s (section IV)", [figures]),
            Table(
                "Search space (sections IV and V)",
                SPACE,
                [dict(zip(("quantity", "paper", "ours"), row, strict=True)) for row in quantities],
            ),
            *(real_tables(measured) if measured.rows or measured.refused else ()),
        ]
        charts = bench_charts.real(measured) if measured.rows else {}
        return PaperReport(
            self.paper,
            bench_charts.speed_title(figures),
            tuple(tables),
            {f"{self.paper.name}-{name}": chart for name, chart in charts.items()},
            tuple(remarks),
            _result(measured),
        )


def _result(measured: RealMatrices) -> str:
    """Return the figures in a sentence, and how they forecast the real matrices."""
    one_number = sentence_of([measured.rating])
    if not measured.scores:
        return one_number
    of_all = measured.scores[0]
    errors = [
        f"{name} median {percent(of_all[error])} off"
        for name, error in (("unblocked", "untuned_error"), ("blocked", "tuned_error"))
        if of_all[error] is not None
    ]
    if of_all["max_ratio"] is not None:
        errors.append(f"blocked maximum {of_all['max_ratio']:.2f} times the fastest")
    generated = sum(map(is_generated, measured.rows))
    return f"{one_number} Of {of_all['matrices']} matrices, {generated} generated: {', '.join(errors)}."
