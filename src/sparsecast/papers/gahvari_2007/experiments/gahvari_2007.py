"""`sparsecast paper gahvari-2007 [FOLDER...]`: four figures, and real matrices next to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sparsecast.api.profiles import calibrated_profile, require_own
from sparsecast.benchmark.experiments import EXPERIMENTS, Experiment, Setting
from sparsecast.benchmark.journal import read_journal
from sparsecast.devices.naming import machine_of
from sparsecast.errors import InputError
from sparsecast.machines.profile import Profile
from sparsecast.matrices.reading import collected
from sparsecast.papers import published
from sparsecast.papers.gahvari_2007 import bench_charts
from sparsecast.papers.gahvari_2007.bench_reports import figures_table, real_tables, sentence_of
from sparsecast.papers.gahvari_2007.rating import bench, rated, real, real_journal
from sparsecast.papers.gahvari_2007.real_matrices import RealMatrices, rows_of, scores_of
from sparsecast.papers.gahvari_2007.search_space import SIZES
from sparsecast.papers.gahvari_2007.summary import LEAST_BUDGET_S, Rating, notes
from sparsecast.results.paper import Paper, PaperItem, PaperReport
from sparsecast.system.tabular import Column, Table
from sparsecast.system.texts import percent

#: Of the budget, what the benchmark takes where this machine has no figures yet; real matrices take the rest.
BENCH_SHARE = 0.5

ITEMS = (
    PaperItem("Section IV, four figures", "done", "the medians as printed, and with cut dimensions refilled"),
    PaperItem("Section V, what is cut", "done", "the same estimator; dimensions grow with the last cache"),
    PaperItem("Figures 3 to 5, real matrices", "done", "maps in CSR and tuned; 275 matrices there"),
    PaperItem("Figure 7, synthetic matrices", "done", "`bench --figure FILE`"),
    PaperItem(
        "Figures 8 to 10, real against synthetic", "done", "columns `synthetic`, and dots in the chart"
    ),
    PaperItem("Figures 11 to 13, the figures over real speeds", "done", "a chart for each size"),
    PaperItem("Figures 13 to 15, symmetric matrices", "differs", "stored as one triangle, as OSKI can"),
    PaperItem("The tuned maximum is too high", "done", "row `blocked maximum over it`"),
    PaperItem("OSKI's table of block sizes", "differs", "every size is measured, so none is missed"),
    PaperItem(
        "Table II, one distribution over bands", "done", "that of 29 non-zeros a row, from another corpus"
    ),
    PaperItem("Tables III to VII", "cannot be had here", "our copy of the paper lacks their numbers"),
    PaperItem("Its three platforms", "cannot be had here", "Pentium 4, Itanium 2 and Opteron"),
)

SPACE = (Column("quantity", "search space"), Column("paper", "the paper"), Column("ours", "ours"))


@EXPERIMENTS.register("gahvari-2007")
class Gahvari2007(Experiment):
    """The four figures, and how they forecast real matrices."""

    paper = Paper(
        name="gahvari-2007",
        authors="H. Gahvari, M. Hoemmen, J. Demmel, K. Yelick",
        title="Benchmarking Sparse Matrix-Vector Multiply in Five Minutes",
        forecasts="the speed of products of a machine, by four figures from synthetic matrices",
        headline="medians are a good indicator; the tuned maximum is too high on all three platforms",
        never_run="its three platforms, and 275 matrices that are listed elsewhere",
    )

    def run(self, setting: Setting) -> PaperReport:
        """Rate this machine if it has no figures, then measure the matrices."""
        machine, files = machine_of(setting.device), collected(setting.matrices)
        if setting.profile is not None:
            require_own(setting.profile.name, machine)
        dtype = setting.dtype or "float64"
        profile, used_s = setting.profile or calibrated_profile(machine), 0.0
        try:
            figures = rated(profile, dtype)
        except InputError:  # not rated yet
            used_s = BENCH_SHARE * setting.budget_s
            if used_s < LEAST_BUDGET_S:
                raise InputError(
                    f"budget {setting.budget_s:g} s: expected at least {LEAST_BUDGET_S / BENCH_SHARE:g} "
                    f"where no figures are kept; raise it"
                ) from None
            bench(
                used_s,
                threads=1,
                dtype=dtype,
                device=setting.device,
                on_progress=lambda done_s, _, name: setting.on_progress(done_s, setting.budget_s, name),
            )
            figures = rated(calibrated_profile(machine), dtype)
        measured = real(
            files,
            figures,
            max(1.0, setting.budget_s - used_s),
            lambda done_s, _, name: setting.on_progress(used_s + done_s, setting.budget_s, name),
        )
        if measured.refused and not (measured.rows or measured.missing or measured.interrupted):
            raise InputError(next(iter(measured.refused.values())))
        return _report(figures, measured)

    def from_records(self, profile: Profile, setting: Setting) -> PaperReport:
        """Take the figures of a profile, and the real matrices that were measured on its machine."""
        figures = rated(profile, setting.dtype)
        kept = read_journal(real_journal(profile.machine))
        rows = rows_of(kept, kept.matrices, figures)
        return _report(figures, RealMatrices(figures, rows, scores_of(rows, figures), {}, 0, False))


def _report(figures: Rating, measured: RealMatrices) -> PaperReport:
    remarks = notes([figures])
    if not measured.rows:
        remarks.append("No real matrices: name a folder of them.")
    if measured.interrupted:
        remarks.append("Stopped: run again to go on.")
    tables = [
        figures_table("MFLOP/s, the figures (section IV)", [figures]),
        Table("Search space (sections IV and V)", SPACE, list(_space(figures, measured))),
        *(real_tables(measured)[::-1] if measured.rows or measured.refused else ()),
    ]
    charts = {"gahvari-2007": bench_charts.real(measured)} if measured.rows else {}
    return PaperReport(
        Gahvari2007.paper,
        bench_charts.speed_title(figures, figures.machine),
        tuple(tables),
        ITEMS,
        charts,
        tuple(remarks),
        _result(figures, measured),
    )


def _result(figures: Rating, measured: RealMatrices) -> str:
    """Return the figures in a sentence, and how they forecast the real matrices."""
    said = sentence_of([figures])
    if not measured.scores:
        return said
    of_all = measured.scores[0]
    errors = [
        f"{name} median {percent(error)} off"
        for name, error in (("unblocked", of_all.untuned_error), ("blocked", of_all.tuned_error))
        if error is not None
    ]
    ratio = "" if of_all.max_ratio is None else f", blocked maximum {of_all.max_ratio:.2f} times the fastest"
    return f"{said} Of {of_all.matrices} real matrices: {', '.join(errors)}{ratio}."


def _space(figures: Rating, measured: RealMatrices) -> Iterator[dict[str, Any]]:
    numbers = published("gahvari_2007")
    series = {point.series for point in figures.speeds if not point.series.is_symmetric}
    rows = {
        "largest dimension": (numbers["search_space"]["largest_dimension"], figures.range_end),
        "largest dimension measured in five minutes": (
            numbers["cut"]["largest_dimension"],
            figures.largest_dimension,
        ),
        "block sizes": (numbers["search_space"]["block_sizes"], len(series)),
        "real matrices": (numbers["matrices"]["real"], len(measured.rows)),
        **{f"{size} synthetic ones": (None, figures.sizes.get(size)) for size in SIZES},
    }
    for quantity, (paper, ours) in rows.items():
        yield {"quantity": quantity, "paper": paper, "ours": ours}
