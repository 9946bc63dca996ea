"""The sparse products of a program, and what plans save of their time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sparsecast.operators.scipy_products import Counted
from sparsecast.results.columns import within
from sparsecast.system.tabular import Column, Columns, Table, Tabular, keys
from sparsecast.system.texts import counted, interval, percent, time

#: Rows that the terminal shows before it says how many follow.
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Saving:
    """Seconds that a plan saves, itself paid, with the ends of an interval where that is known."""

    time_s: float
    low_s: float | None = None
    high_s: float | None = None
    #: Products from which on it saves time; None where it never does, or where that is unknown.
    pays_from: int | None = None

    @classmethod
    def forecast(
        cls, products: int, first: int, less_s: tuple[float, float, float], planning_s: float
    ) -> Saving:
        """Return the saving of products that each take so much less from the `first` on: at least 0."""
        count = max(0, products - first)
        time_s, low_s, high_s = (max(0.0, count * each_s - planning_s) for each_s in less_s)
        pays_from = None if less_s[0] <= 0 else first + math.ceil(planning_s / less_s[0])
        return cls(time_s, low_s, high_s, pays_from)


@dataclass(frozen=True, slots=True)
class SeenProducts:
    """Products that were counted in a run of `run_s` seconds, and a plan for them."""

    counted: Counted
    run_s: float
    plan: str | None = None  # its formats, joined by a plus
    #: plan_s, scipy_s: seconds of a product by the plan and by SciPy, timed in turn after the run.
    plan_s: float | None = None
    scipy_s: float | None = None
    planning_s: float | None = None  # to find and build plans for all matrices of the kind; None if none was
    #: What a plan would save, at least 0 and with an interval. With `--apply`, what its products would have
    #: taken in SciPy less what they took, which can be negative.
    saving: Saving | None = None
    unplanned: str = ""  # why there is no plan


def _span(saving: Saving) -> str | None:
    return None if saving.low_s is None else interval(saving.low_s, saving.high_s)


#: Of a Saving.
_SAVING: Columns = (
    Column("saving_s", "saves", "time_s", about="of all products, the plan itself paid"),
    Column("saving_low_s", value="low_s"),
    Column("saving_high_s", value="high_s"),
    Column("", "interval", _span),
)

#: Of SeenProducts.
SEEN: Columns = (
    Column("place", "first at", "counted.kind.place", about="file and line of the program that asks first"),
    Column("format", "matrix", "counted.kind.format", str.upper),
    Column(
        "transposed", "transposed", "counted.is_transposed", about="the program's matrix is that of A^T x"
    ),
    *within("counted.kind", (Column("rows", "rows"), Column("cols"), Column("nnz", "entries"))),
    *within("counted.kind", keys("dtype", "vector_dtype")),
    Column("matrices", value="counted.matrices", about="of one shape and place, whose products are added up"),
    Column("changed", value="counted.has_changed", about="whether values were seen to change, in a sample"),
    Column("vectors", "vectors", "counted.kind.vectors"),
    Column("products", "products", "counted.products"),
    Column("time_s", "time", "counted.time_s", about="of all these products"),
    Column("share", "share", lambda row: row.counted.time_s / row.run_s, percent, about="of the whole run"),
    Column("replaced", value="counted.replaced", about="products that --apply did by a plan"),
    Column("", "by plan", lambda row: row.counted.replaced or None, "{:,}".format),
    Column("replaced_s", value="counted.replaced_s"),
    Column("plan", "plan", about="null where there is none, which `unplanned` explains"),
    Column("plan_s", about="of one product, timed after the run; null with --apply"),
    Column("scipy_s", about="of one product with SciPy, in turn with `plan_s`"),
    Column("planning_s", about="to look for the plan and to build it"),
    *within("saving", _SAVING),
    Column(
        "pays_from",
        value="saving.pays_from",
        about="products from which on the plan saves time; null where it never does",
    ),
    Column("unplanned"),
)


@dataclass(frozen=True, slots=True)
class Seen(Tabular):
    """What was seen of a program."""

    products: tuple[SeenProducts, ...]  # the longest time first
    run_s: float  # of the whole run
    is_applied: bool = False  # whether plans did products while it ran
    #: Largest difference between a planned product and that of SciPy, over the sum of abs(a x) of its row.
    error: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def time_s(self) -> float:
        """Seconds of all products."""
        return sum(row.counted.time_s for row in self.products)

    @property
    def saving(self) -> Saving | None:
        """What all plans save together; None where none was looked for."""
        savings = [row.saving for row in self.products if row.saving is not None]
        if not savings:
            return None
        ends = [(each.low_s, each.high_s) for each in savings if each.low_s is not None]
        total_s = sum(each.time_s for each in savings)
        return Saving(total_s, *map(sum, zip(*ends, strict=True))) if ends else Saving(total_s)

    def without_plans(self, reason: str) -> Seen:
        """Return it with the reason why no plan was made, where a row has none of its own."""
        rows = tuple(replace(row, unplanned=row.unplanned or reason) for row in self.products)
        return replace(self, products=rows, notes=(f"No plan was made: {reason}.", *self.notes))

    def table(self, title: str = "Sparse products with SciPy") -> Table:
        """Return a row for each matrix, the longest time first."""
        return Table(title, SEEN, self.products, most=_SHOWN)

    def sentences(self) -> list[str]:
        """Return where the time of the run is, and what plans save of it."""
        done, saving = sum(row.counted.products for row in self.products), self.saving
        if not done:
            return [f"No sparse product with SciPy in a run of {time(self.run_s)}."]
        share = percent(self.time_s / self.run_s)
        said = [
            f"{counted(done, 'product')} took {time(self.time_s)}, {share} of the run of {time(self.run_s)}."
        ]
        if self.is_applied and self.error is not None and saving is not None:
            planned = counted(sum(row.counted.replaced for row in self.products), "product")
            less = f"{time(abs(saving.time_s))} {'less' if saving.time_s > 0 else 'more'} than in SciPy"
            said.append(f"{planned} were done by plans: {less}, the plans themselves paid.")
            error = f"{self.error:.1e} of the sum of abs(a x)"
            said.append(f"Where results were compared, they agree with SciPy's within rounding: to {error}.")
        elif self.is_applied:
            said.append("No product was done by a plan: none pays.")
        elif saving is not None and saving.time_s > 0:
            less = f"{time(saving.time_s)} less ({_span(saving)}), the plans themselves paid"
            said.append(
                f"By plans they would take {less}: the run would take {time(self.run_s - saving.time_s)}."
            )
        elif saving is not None:
            starts = {row.counted.kind.place: row.saving.pays_from for row in self.products if row.saving}
            later = [f"{place} from {counted(n, 'product')} on" for place, n in starts.items() if n]
            reason = f"they would pay for {', '.join(later)}" if later else "SciPy's products are as fast"
            said.append(f"Plans would save nothing in this run: {reason}.")
        return said


#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "run": (
        *keys("program", "status"),
        *within(
            "seen", (Column("run_s", about="of the program alone"), Column("time_s", about="of all products"))
        ),
        Column("products", value="seen.products", columns=SEEN, about="the longest time first"),
        *within("seen.saving", _SAVING[:-1]),
        Column("applied", value="seen.is_applied"),
        Column(
            "error", value="seen.error", about="of planned products from SciPy's, over the sum of abs(a x)"
        ),
        Column("notes", value="seen.notes"),
    )
}
