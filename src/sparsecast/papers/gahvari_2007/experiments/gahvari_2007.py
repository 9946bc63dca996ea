"""`sparsecast paper gahvari-2007 [FOLDER...]`: four figures, and real matrices next to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sparsecast.api.profiles import calibrated_profile, require_own
from sparsecast.benchmark.experiments import EXPERIMENTS, Experiment, Setting
from sparsecast.benchmark.journal import read_journal
from sparsecast.devices.naming import machine_of
from sparsecast.errors import InputError
from sparsecast.formats.bcsr import BLOCK_SIDES
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import TWIN_PREFIX
from sparsecast.matrices.reading import collected
from sparsecast.papers import described, published
from sparsecast.papers.gahvari_2007 import bench_charts
from sparsecast.papers.gahvari_2007.bench_reports import rating_tables, real_tables, sentence_of
from sparsecast.papers.gahvari_2007.rating import bench, rated
from sparsecast.papers.gahvari_2007.real_matrices import (
    RealMatrices,
    groups_done,
    real_journal,
    real_matrices,
    rows_of,
)
from sparsecast.papers.gahvari_2007.search_space import SIZES
from sparsecast.papers.gahvari_2007.summary import LEAST_BUDGET_S, Rating, notes
from sparsecast.results.paper import PaperReport
from sparsecast.system.tabular import Column, Table
from sparsecast.system.texts import percent

#: Of the budget, what the benchmark takes where this machine has no figures yet; real matrices take the rest.
BENCH_SHARE = 0.5

SPACE = (Column("quantity", "search space"), Column("paper", "the paper"), Column("ours", "ours"))


@EXPERIMENTS.register("gahvari-2007")
class Gahvari2007(Experiment):
    """The four figures, and how they forecast real matrices."""

    paper = described("gahvari_2007")

    def run(self, setting: Setting) -> PaperReport:
        """Rate this machine if it has no figures, then measure the matrices."""
        machine, files = machine_of(setting.device), collected(setting.matrices)
        if setting.profile is not None:
            require_own(setting.profile.name, machine)
        dtype = setting.dtype or "float64"
        figures, used_s = _whole(setting.profile or calibrated_profile(machine), dtype), 0.0
        if figures is None:
            used_s = BENCH_SHARE * setting.budget_s
            if used_s < LEAST_BUDGET_S:
                raise InputError(
                    f"budget {setting.budget_s:g} s: expected at least {LEAST_BUDGET_S / BENCH_SHARE:g} "
                    f"where no figures are kept; raise it"
                )
            result = bench(
                used_s,
                threads=1,
                dtype=dtype,
                device=setting.device,
                on_progress=lambda done_s, _, name: setting.on_progress(done_s, setting.budget_s, name),
            )
            figures = rated(calibrated_profile(machine), dtype)
            if result.interrupted:
                return _report(figures, RealMatrices(figures, (), {}, len(files), True))
        measured = real_matrices(
            files,
            figures,
            max(1.0, setting.budget_s - used_s),
            lambda done_s, _, name: setting.on_progress(used_s + done_s, setting.budget_s, name),
        )
        return _report(figures, measured)

    def from_records(self, profile: Profile, setting: Setting) -> PaperReport:
        """Take the figures of a profile, and the real matrices that were measured on its machine."""
        figures = rated(profile, setting.dtype)
        kept = read_journal(real_journal(profile.machine))
        whole = [
            name
            for name in kept.matrices
            if not name.startswith(TWIN_PREFIX)
            and groups_done(name, figures, kept.records) >= len(BLOCK_SIDES)
        ]
        return _report(figures, RealMatrices(figures, rows_of(kept, whole, figures), {}, 0, False))


def _whole(profile: Profile, dtype: str) -> Rating | None:
    """Return the figures of a profile; None where there are none, or their run was stopped."""
    try:
        figures = rated(profile, dtype)
    except InputError:
        return None
    return None if figures.noise is None else figures  # noise is measured last


def _report(figures: Rating, measured: RealMatrices) -> PaperReport:
    remarks = notes([figures])
    if not measured.rows:
        remarks.append("No real matrices: name a folder of them.")
    elif all(score["twin"] == "again" for score in measured.twins):
        remarks.append("No twins are measured yet, so Figures 8 to 10 are missing: run again to go on.")
    if measured.interrupted:
        remarks.append("Stopped: run again to go on.")
    tables = [
        *rating_tables("The figures, MFLOP/s (section IV)", [figures]),
        Table("Search space (sections IV and V)", SPACE, list(_space(figures, measured))),
        *(real_tables(measured) if measured.rows or measured.refused else ()),
    ]
    charts = bench_charts.real(measured) if measured.rows else {}
    return PaperReport(
        Gahvari2007.paper,
        bench_charts.speed_title(figures),
        tuple(tables),
        Gahvari2007.paper.items,
        {f"gahvari-2007-{name}": chart for name, chart in charts.items()},
        tuple(remarks),
        _result(figures, measured),
    )


def _result(figures: Rating, measured: RealMatrices) -> str:
    """Return the figures in a sentence, and how they forecast the real matrices."""
    one_number = sentence_of([figures])
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
    return f"{one_number} Of {of_all['matrices']} real matrices: {', '.join(errors)}."


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
