"""The experiments of papers: what there are, and one of them run here or on stored Records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sparsecast.benchmark.experiments import EXPERIMENTS
from sparsecast.benchmark.experiments import ExperimentSetting as ExperimentSetting
from sparsecast.errors import StorageError
from sparsecast.machines.profile import Profile
from sparsecast.machines.storage import home, write_atomically
from sparsecast.results.paper import PaperReport


def listed_papers() -> list[dict[str, Any]]:
    """Return each `paper` that is repeated here, and `ours`: our last result of each machine."""
    return [{"paper": EXPERIMENTS.get(name).paper, "ours": _kept(name)} for name in EXPERIMENTS.names()]


def paper(name: str, setting: ExperimentSetting | None = None, records: Profile | None = None) -> PaperReport:
    """Run the experiment of a paper, one of `listed_papers`, and return its tables with our columns.

    With `records`, those of that profile are taken, and nothing is measured. An UnknownNameError says that
    there is no such paper, an InputError that its experiment cannot be done so.
    """
    experiment, setting = EXPERIMENTS.get(name)(), setting or ExperimentSetting()
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
