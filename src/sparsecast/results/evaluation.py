"""Forecasts beside measurements, and the scores of models."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any

from sparsecast.machines.storage import write_table
from sparsecast.matrices.problem import group_of
from sparsecast.models.forecaster import QUANTITIES
from sparsecast.records import Estimate, Record
from sparsecast.results.columns import CANDIDATE, shown_storage, storage_of, within
from sparsecast.system.files import Place
from sparsecast.system.tabular import Column, Columns, Table, Tabular, document, keys
from sparsecast.system.texts import counted, percent, percent_number, signed_percent, time


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One Candidate on one matrix, by name, and what a model expects of its time or energy."""

    matrix: str
    model: str
    quantity: str
    estimate: Estimate
    record: Record
    again: Record | None = None  # the same measured once more, later in the same evaluation

    @property
    def group(self) -> str:
        """The group that the matrix belongs to in cross-validation."""
        return group_of(self.record.matrix)

    @property
    def measured(self) -> float:
        """What was measured, in the unit of the quantity."""
        return float(getattr(self.record, QUANTITIES[self.quantity]))

    @property
    def measured_again(self) -> float | None:
        """What was measured of the same later, in the same unit."""
        return None if self.again is None else value_of(self.again, self.quantity)

    @property
    def error(self) -> float:
        """Forecast over measurement, minus 1: negative where the forecast was too low."""
        return self.estimate.value / self.measured - 1

    @property
    def repeat_difference(self) -> float | None:
        """Difference of the two measurements, relative to the first: the error of a perfect forecast."""
        return None if self.measured_again is None else abs(self.measured_again / self.measured - 1)

    @property
    def is_covered(self) -> bool | None:
        """Whether the interval held the measurement; None without an interval."""
        if self.estimate.low is None or self.estimate.high is None:
            return None
        return self.estimate.low <= self.measured <= self.estimate.high


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorScore:
    """The errors of a model's forecasts, and what repeated measurements of the same differ by."""

    forecasts: int  # that were compared with a measurement
    mean_error: float  # of the absolute relative errors
    median_error: float  # of the same
    p90_error: float  # their 90th percentile
    bias: float  # mean of the signed relative errors: negative where the forecasts are too low
    coverage: float | None = None  # share of the measurements within their intervals
    mean_width: float | None = None  # of the intervals, relative to the forecast
    median_noise: float | None = None  # of the Records
    #: Of the relative differences of what was measured again later; None where nothing was.
    repeat_median: float | None = None
    repeat_p90: float | None = None  # their 90th percentile


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScore(ErrorScore):
    """A model over a collection of matrices.

    The ratios, one for each measured matrix, are time (or energy) of the Candidate that the model chooses
    over that of the best of all measured. Where the model forecasts none of a matrix' Candidates, plain CSR
    counts as its choice.
    """

    quantity: str
    regret: float  # geometric mean of the ratios, minus 1
    worst_ratio: float
    #: Share of the matrices whose best Candidate it chooses, or one that is slower by no more than the noise
    #: of the best one's Record.
    top1: float
    unforecast: int  # measured Candidates without a forecast of it
    #: Time to forecast all Candidates of a matrix, its Structure included, over that of one product in plain
    #: CSR: the median, and the largest of matrices with at least LARGE_NNZ and VERY_LARGE_NNZ entries. None
    #: where it was not measured.
    forecast_products: float | None = None
    forecast_products_large: float | None = None
    forecast_products_very_large: float | None = None
    formats: Mapping[str, ErrorScore] = field(default_factory=dict)  # by `storage_of`
    #: By the cache that holds what a product moves, the smallest first: "within L2", ..., "twice beyond L3".
    sizes: Mapping[str, ErrorScore] = field(default_factory=dict)
    #: The matrices with the largest errors, and for each the median of the signed errors of its Candidates.
    worst: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Repeats:
    """What was measured once more, later in an evaluation."""

    matrices: int
    candidates: int  # of all matrices together
    median: float  # of the absolute differences of the two times, relative to the first
    p90: float  # their 90th percentile
    after_s: float  # median of the seconds between the two


@dataclass(frozen=True)
class Evaluation(Tabular):
    """Forecasts against measurements over a collection."""

    profile: str
    rows: tuple[EvaluationRow, ...]
    #: Of those that forecast something, the best first: by the median error over all measured Candidates,
    #: where one without a forecast counts as infinitely wrong.
    models: dict[str, ModelScore]
    refused: dict[str, str] = field(default_factory=dict)  # matrices and models that refuse, and why
    interrupted: bool = False  # by the user; what was done until then is here
    repeats: Repeats | None = None
    taken_over: int = 0  # matrices of which nothing was measured, because all of it was taken over

    def table(self) -> Table:
        """Return the errors of each model, the best first, and below it those of each format and storage."""
        rows: list[dict[str, Any]] = []
        for name, model in self.models.items():
            by_name = sorted(model.formats.items())
            # The narrow storages of a format follow it.
            of_format = {stored.partition(" ")[0]: score.median_error for stored, score in reversed(by_name)}
            formats = sorted(by_name, key=lambda item: (of_format[item[0].partition(" ")[0]], item[0]))
            rows += [{"model": name, "format": None, "score": model, "heading": _of_model(name, model)}]
            rows += [
                {"model": name, "format": stored, "score": score, "heading": f"  {shown_storage(stored)}"}
                for stored, score in formats
            ]
        title = f"Errors of forecasts on {self.profile} in percent, best model first"
        return Table(title, ERROR, rows, _ERRORS)

    def sizes(self) -> Table:
        """Return the errors of each model by what a product moves, the smallest first."""
        found = {name for score in self.models.values() for name in score.sizes}
        names = sorted(found, key=lambda name: ("twice" in name, "beyond" in name, name))
        columns = [
            Column("model", "model"),
            *(Column("", name, name) for name in names),
        ]
        rows = []
        for name, model in self.models.items():
            medians = {
                size: f"{percent_number(score.median_error)} ({score.forecasts:,})"
                for size, score in model.sizes.items()
            }
            rows.append({"model": _of_model(name, model), **dict.fromkeys(names), **medians})
        title = "Median errors in percent, by the cache that holds what a product moves"
        return Table(title, tuple(columns), rows, ("in brackets: the number of forecasts",))

    def choices(self) -> Table:
        """Return what each model's choice of a format loses, and what its forecasts cost."""
        rows = [{"model": _of_model(name, score), "score": score} for name, score in self.models.items()]
        return Table("Choice of the format, and cost of the forecasts", CHOICE, rows, _CHOICES)

    def worst_sentence(self) -> str:
        """Return which matrices the best model forecasts worst."""
        best = next(iter(self.models), None)
        if best is None:
            return "No forecast was compared with a measurement."
        named = ", ".join(f"{name} {signed_percent(error)}" for name, error in self.models[best].worst)
        return f"Worst matrices of {best}, by the median error of their formats: {named}."

    def sentence_of(self, matrix: str) -> str:
        """Return the fastest format of a matrix and the least median errors of it, or why it is left out."""
        fastest = next((row.record for row in self.rows if row.matrix == matrix), None)
        if fastest is None:
            return f"{matrix}: {self.refused.get(matrix, 'no forecast')}"
        scores = (
            f"{_of_model(name, score)} {percent(score.median_error)}" for name, score in self.models.items()
        )
        found = f"{shown_storage(storage_of(fastest.candidate))} {time(fastest.time_s)}"
        return f"{matrix}: {found}; median errors: {', '.join(islice(scores, 3))}"

    def repeats_sentence(self) -> str:
        """Return by what measurements differ that were repeated."""
        repeats = self.repeats
        if repeats is None:
            return "Nothing was measured again: how far repeated measurements differ is not known."
        formats = counted(repeats.candidates, "format")
        matrices = counted(repeats.matrices, "matrix")
        return (
            f"Measured again after {repeats.after_s:,.0f} s (median), {formats} of {matrices} differed by "
            f"{percent(repeats.median)} at the median and {percent(repeats.p90)} at the 90th percentile."
        )

    def write_rows(self, path: Place) -> None:
        """Write a Parquet file with the keys of the JSON rows; a StorageError if it cannot be written."""
        lines = [document(EVALUATION_ROW, row) for row in self.rows]
        lines = [{**line, "parameters": json.dumps(line["parameters"])} for line in lines]
        kinds = {column.key: float for column in EVALUATION_ROW if column.key}
        write_table(path, lines, kinds | dict.fromkeys(_TEXTS, str) | dict.fromkeys(_COUNTS, int), {})


def value_of(record: Record, quantity: str) -> float | None:
    """Return what was measured, in the unit of the quantity; None where it was not."""
    value = getattr(record, QUANTITIES[quantity])
    return None if value is None else float(value)


def _of_model(name: str, score: ModelScore) -> str:
    return name if score.quantity == "time" else f"{name} ({score.quantity})"


def _of_quantity(path: str, quantity: str) -> Callable[[EvaluationRow], Any]:
    column = Column(path)
    return lambda row: column.of(row) if row.quantity == quantity else None


#: Of an EvaluationRow.
EVALUATION_ROW: Columns = (
    *keys("matrix", "group"),
    Column("nnz", value="record.nnz"),
    *within("estimate.candidate", CANDIDATE),
    Column("model"),
    *(
        Column(f"{key}_{unit}", value=_of_quantity(path, quantity), about=f"null where {other} is forecast")
        for quantity, unit, other in (("time", "s", "energy"), ("energy", "j", "time"))
        for key, path in (
            ("predicted", "estimate.value"),
            ("low", "estimate.low"),
            ("high", "estimate.high"),
            ("measured", "measured"),
            ("again", "measured_again"),
        )
    ),
    Column("error", about="forecast over measurement, minus 1"),
    *within("record", keys("noise", "measured_at")),
)

#: Of these, texts and whole numbers; the others are numbers that may be missing.
_TEXTS = ("matrix", "group", "format", "kernel", "device", "dtype", "parameters", "model", "measured_at")
_COUNTS = ("nnz", "threads", "vectors")

#: Of an ErrorScore; people read its shares in percent.
ERROR_SCORE: Columns = (
    Column("forecasts", "number"),
    Column("median_error", "median", text=percent_number),
    Column("mean_error", "mean", text=percent_number),
    Column("p90_error", "90 %", text=percent_number),
    Column("bias", about="mean of the signed errors"),
    Column("coverage", "held", text=percent_number),
    Column("mean_width", "width", text=percent_number),
    Column("median_noise", "noise", text=percent_number),
    Column("repeat_median", "again", text=percent_number),
    Column("repeat_p90", "90 %", text=percent_number),
)

#: What the choices of a ModelScore lose, and what its forecasts cost.
CHOICE_SCORE: Columns = (
    Column("regret", "regret", text=percent, about="geometric mean of the ratios, minus 1"),
    Column("worst_ratio", "worst", text="{:.2f}".format),
    Column("top1", "best found", text=percent),
    Column("unforecast", "not forecast"),
    Column("forecast_products", "cost", about="time of all forecasts of a matrix over one product of CSR"),
    Column("forecast_products_large", "large"),
    Column("forecast_products_very_large", "very large"),
)

#: Of a ModelScore.
MODEL_SCORE: Columns = (
    Column("quantity"),
    *ERROR_SCORE,
    *CHOICE_SCORE,
    Column("formats", columns=ERROR_SCORE, by="format", about='of narrow storage "csr (values one)"'),
    Column("sizes", columns=ERROR_SCORE, by="size", about='"within L2", ..., "beyond L3", "twice beyond L3"'),
    Column("worst", columns=(Column("matrix", value=itemgetter(0)), Column("error", value=itemgetter(1)))),
)

#: Of a line of the table of errors: a model, or one of its formats.
ERROR: Columns = (Column("", "model", "heading"), *keys("model", "format"), *within("score", ERROR_SCORE))
_ERRORS = (
    "best: by the median over all that was measured; what has no forecast counts as wrong",
    "held: measurements within the interval; width: of the interval, over the forecast",
    "noise: median of the measurements; again: they differed by, when measured once more",
)

#: Of a line of the table of choices.
CHOICE: Columns = (Column("model", "model"), *within("score", CHOICE_SCORE))
_CHOICES = (
    "worst: time of the chosen format over that of the best",
    "cost: of all forecasts for a matrix, in products of CSR: the median, and the largest from a million",
    "and from ten million entries on",
)

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "evaluate": (
        Column("profile"),
        Column("rows", columns=EVALUATION_ROW),
        Column("models", columns=MODEL_SCORE, by="model", about="the best first"),
        Column("repeats", columns=keys("matrices", "candidates", "median", "p90", "after_s")),
        Column("refused", about="{matrix or model: reason}"),
        *keys("interrupted", "taken_over"),
    )
}
