"""The experiment of Doe (2026): what a row costs, beside the printed 2 ns."""

from __future__ import annotations

from doe_2026.row_cost import row_cost
from sparsecast.benchmark.experiments import EXPERIMENTS, Experiment, ExperimentSetting
from sparsecast.errors import InputError
from sparsecast.machines.profile import Profile
from sparsecast.results.paper import Paper, PaperItem, PaperReport
from sparsecast.system.tabular import Column, Table

ITEMS = (PaperItem("Table 1", "done"),)

COLUMNS = (Column("paper_s", "paper"), Column("ours_s", "ours"))


@EXPERIMENTS.register("doe")
class Doe(Experiment):
    """Table 1."""

    paper = Paper("doe", "J. Doe", "Rows", "products of any matrix", "a row takes 2 ns", "nothing", ITEMS)

    def run(self, setting: ExperimentSetting) -> PaperReport:
        """Use what was measured."""
        if setting.profile is None:
            raise InputError("paper doe without a profile: expected one; name it by --profile")
        return self.from_records(setting.profile, setting)

    def from_records(self, profile: Profile, setting: ExperimentSetting) -> PaperReport:
        """Return Table 1."""
        row = {"paper_s": 2e-9, "ours_s": row_cost(profile)}
        return PaperReport(self.paper, profile.name, (Table("Table 1", COLUMNS, [row]),))
