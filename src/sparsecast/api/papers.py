"""The experiments of papers: what there are, and one of them run here or on stored Records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from sparsecast.benchmark.experiments import EXPERIMENTS, Setting
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.errors import StorageError
from sparsecast.machines.profile import Profile
from sparsecast.machines.storage import home, write_atomically
from sparsecast.results.paper import ListedPaper, PaperReport


def listed_papers() -> list[ListedPaper]:
    """Return the papers that `paper` repeats, with our last result of each machine."""
    return [ListedPaper(EXPERIMENTS.get(name).paper, _kept(name)) for name in EXPERIMENTS.names()]


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
    report = experiment.run(setting) if records is None else experiment.from_records(records, setting)
    if report.ours:
        text = json.dumps({**_kept(name), report.machine: report.ours})
        write_atomically(_path(name), lambda path: path.write_text(text, encoding="utf-8"))
    return report


def _path(name: str) -> Path:
    return home() / "papers" / f"{name}.json"


def _kept(name: str) -> dict[str, str]:
    """Return our last result of each machine."""
    try:
        return dict(json.loads(_path(name).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise StorageError(
            f"{_path(name)} cannot be read ({error}): expected our results by machine; delete it"
        ) from error
