"""The experiments of papers: what there are, and one of them run here or on stored Records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparsecast.benchmark.experiments import EXPERIMENTS, Setting
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.machines.profile import Profile
from sparsecast.results.paper import Paper, PaperReport


def papers() -> list[Paper]:
    """Return the papers that `paper` repeats."""
    return [EXPERIMENTS.get(name).paper for name in EXPERIMENTS.names()]


def paper(
    name: str,
    matrices: Sequence[str | Path] = (),
    *,
    device: str = "cpu",
    dtype: str | None = None,
    profile: Profile | None = None,
    budget_s: float = 600.0,
    records: Profile | None = None,
    on_progress: Progress = no_progress,
) -> PaperReport:
    """Run the experiment of a paper, and return its tables with our columns.

    Parameters
    ----------
    name : str
        One of `papers`.
    matrices : sequence of str or Path
        Files, gallery matrices or names of SuiteSparse; those of the experiment by default.
    device, dtype : str
        Where and with which values products are done; by default as the paper does.
    profile : Profile, optional
        In place of this machine's.
    budget_s : float
        Seconds that it may measure.
    records : Profile, optional
        Whose Records are taken, and nothing is measured.
    on_progress : callable
        Called with the seconds done, the seconds expected in all, and what is done.

    Raises
    ------
    UnknownNameError
        If there is no such paper.
    InputError
        If the paper's experiment cannot be done so.
    """
    experiment = EXPERIMENTS.get(name)()
    setting = Setting(device, dtype, profile, budget_s, tuple(matrices), on_progress)
    if records is not None:
        return experiment.from_records(records, setting)
    return experiment.run(setting)
