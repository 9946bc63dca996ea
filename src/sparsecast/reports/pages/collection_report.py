"""What the page of a collection of matrices is drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparsecast.benchmark.evaluation import Evaluation, EvaluationRow
from sparsecast.benchmark.rarity import Rarity
from sparsecast.reports.pages.matrix_report import MatrixReport


@dataclass(frozen=True, slots=True, eq=False)
class CollectionReport:
    """What is known of a collection of matrices on a machine.

    Attributes
    ----------
    matrices : tuple of str
        Paths, folders and gallery matrices, as they were asked for.
    reports : dict of str to MatrixReport
        By name; their problems hold no matrix any more.
    model : str
        That forecasts each matrix, and whose errors are shown one by one.
    evaluation : Evaluation
        Scores of the models on what was measured of these matrices, none of which they had seen.
    rarities : dict of str to tuple of Rarity
        In what each measured matrix is unusual among those of other groups that the model learned from.
    refused : dict of str to str
        Matrices that cannot be forecast, and why.
    """

    matrices: tuple[str, ...]
    reports: Mapping[str, MatrixReport]
    model: str
    evaluation: Evaluation
    rarities: Mapping[str, tuple[Rarity, ...]]
    refused: Mapping[str, str]

    @property
    def rows(self) -> list[EvaluationRow]:
        """The forecasts of `model` that were compared with a measurement."""
        return [row for row in self.evaluation.rows if row.model == self.model]

    @property
    def unmeasured(self) -> list[str]:
        """Matrices of which no measurement was kept."""
        measured = {row.matrix for row in self.evaluation.rows}
        return [name for name in self.reports if name not in measured]
