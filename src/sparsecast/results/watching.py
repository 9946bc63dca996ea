"""The sparse products of a program, and what plans save of their time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sparsecast.operators.scipy_products import Counted
from sparsecast.results.columns import stored_as, within
from sparsecast.results.plan import Plan
from sparsecast.system.tabular import Column, Columns, Table, Tabular, keys
from sparsecast.system.texts import counted, interval, percent, time

#: Rows that the terminal shows before it says how many follow.
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class SeenProducts:
    """Products that were counted in a run of `run_s` seconds, and the plan for as many.

    Attributes
    ----------
    is_applied : bool
        Whether plans did products while the program ran.
    planning_s : float or None
        Seconds to look for the plan and to build it; None where nothing was looked for.
    scipy_s : float or None
        Seconds of a product with SciPy alone. In a program others may be between, so that caches are cold:
        a plan saves the difference to what SciPy takes alone, as what it takes alone itself is forecast.
    unplanned : str
        Why there is no plan.
    """

    counted: Counted
    run_s: float
    is_applied: bool = False
    plan: Plan | None = None
    planning_s: float | None = None
    scipy_s: float | None = None
    unplanned: str = ""

    @property
    def share(self) -> float:
        """Time over that of the whole run."""
        return self.counted.time_s / self.run_s

    @property
    def saving_s(self) -> float | None:
        """Seconds that the plan saves, the plan itself paid; 0 where SciPy is as fast.

        With `is_applied`, what the products of the plan would have taken in SciPy, less what they took.
        """
        if not self.is_applied or self.planning_s is None:
            return self.saving("time_s")
        done = self.counted
        scipy_s = (done.time_s - done.replaced_s) / (done.products - done.replaced)
        return scipy_s * done.replaced - done.replaced_s - self.planning_s

    def saving(self, end: str) -> float | None:
        """Return the saving for ``"time_s"`` of the plan, or an end of it, ``"low_s"`` or ``"high_s"``."""
        less_s = self._less_s(end)
        if less_s is None or self.planning_s is None:
            return None
        return max(0.0, self.counted.products * less_s - self.planning_s)

    @property
    def pays_from(self) -> int | None:
        """Products from which on the plan, itself paid, saves time; None where none of it does."""
        less_s = self._less_s("time_s")
        return None if not less_s or less_s < 0 else math.ceil((self.planning_s or 0.0) / less_s)

    def _less_s(self, end: str) -> float | None:
        """Return what a product of the plan takes less than one of SciPy; None without a plan to make."""
        product_s: float | None = getattr(self.plan, end, None)
        if product_s is None or self.planning_s is None or self.is_applied:
            return None
        mean_s = self.counted.time_s / self.counted.products
        return (mean_s if self.scipy_s is None else min(mean_s, self.scipy_s)) - product_s

    @property
    def storage(self) -> str | None:
        """The formats of the plan, joined by a plus; None without a plan."""
        blocks = self.plan.blocks if self.plan else ()
        return " + ".join(dict.fromkeys(stored_as(block.candidate) for block in blocks)) or None


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
    Column("share", "share", text=percent, about="of the whole run"),
    Column("replaced", value="counted.replaced", about="products that --apply did by a plan"),
    Column("", "by plan", lambda row: row.counted.replaced if row.is_applied else None, "{:,}".format),
    Column("replaced_s", value="counted.replaced_s"),
    Column("plan", "plan", "storage", about="null where there is none, which `unplanned` explains"),
    Column("plan_s", value="plan.time_s", about="of one product"),
    Column("scipy_s", about="of one product with SciPy alone, where there is a plan"),
    Column("planning_s", about="to look for the plan and to build it"),
    Column("saving_s", "saves", about="of all products, the plan itself paid"),
    Column("saving_low_s", value=lambda row: row.saving("high_s")),
    Column("saving_high_s", value=lambda row: row.saving("low_s")),
    Column("", "interval", lambda row: _span(row.saving("high_s"), row.saving("low_s"))),
    Column("pays_from", about="products from which on the plan saves time; null where it never does"),
    Column("unplanned"),
)


def _span(low_s: float | None, high_s: float | None) -> str | None:
    return None if low_s is None else interval(low_s, high_s)


@dataclass(frozen=True, slots=True)
class Seen(Tabular):
    """What was seen of a program.

    Attributes
    ----------
    products : tuple of SeenProducts
        The longest time first.
    run_s : float
        Seconds of the whole run.
    is_applied : bool
        Whether plans did products while it ran.
    error : float or None
        Largest difference between a planned product and that of SciPy, over the sum of abs(a x) of its row.
    notes : tuple of str
    """

    products: tuple[SeenProducts, ...]
    run_s: float
    is_applied: bool = False
    error: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def time_s(self) -> float:
        """Seconds of all products."""
        return sum(row.counted.time_s for row in self.products)

    def saving(self, end: str = "time_s") -> float | None:
        """Return the seconds that all plans save, as `SeenProducts.saving`; None where there is none."""
        planned = [row for row in self.products if row.planning_s is not None]
        saved = [row.saving_s if end == "time_s" else row.saving(end) for row in planned]
        return None if not saved or None in saved else sum(filter(None, saved))

    def without_plans(self, reason: str) -> Seen:
        """Return it with the reason why no plan was made, where a row has none of its own."""
        rows = tuple(replace(row, unplanned=row.unplanned or reason) for row in self.products)
        return replace(self, products=rows, notes=(f"No plan was made: {reason}.", *self.notes))

    def table(self, title: str = "Sparse products with SciPy") -> Table:
        """Return a row for each matrix, the longest time first."""
        return Table(title, SEEN, self.products, most=_SHOWN)

    def sentences(self) -> list[str]:
        """Return where the time of the run is, and what plans save of it."""
        done = sum(row.counted.products for row in self.products)
        if not done:
            return [f"No sparse product with SciPy in a run of {time(self.run_s)}."]
        share, saved = percent(self.time_s / self.run_s), self.saving()
        said = [
            f"{counted(done, 'product')} took {time(self.time_s)}, {share} of the run of {time(self.run_s)}."
        ]
        if self.is_applied and self.error is not None and saved is not None:
            planned = counted(sum(row.counted.replaced for row in self.products), "product")
            less = f"{time(abs(saved))} {'less' if saved > 0 else 'more'} than in SciPy"
            said.append(f"{planned} were done by plans: {less}, the plans themselves paid.")
            error = f"{self.error:.1e} of the sum of abs(a x)"
            said.append(f"Where results were compared, they agree with SciPy's within rounding: to {error}.")
        elif self.is_applied:
            said.append("No product was done by a plan: none pays.")
        elif saved:
            span = _span(self.saving("high_s"), self.saving("low_s"))
            less = f"{time(saved)} less ({span or 'interval unknown'}), the plans themselves paid"
            said.append(f"By plans they would take {less}: the run would take {time(self.run_s - saved)}.")
        elif saved is not None:
            starts = {row.counted.kind.place: row.pays_from for row in self.products}
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
        Column(
            "saving_s", value=lambda ran: ran["seen"].saving(), about="of all plans; null where there is none"
        ),
        Column("saving_low_s", value=lambda ran: ran["seen"].saving("high_s")),
        Column("saving_high_s", value=lambda ran: ran["seen"].saving("low_s")),
        Column("applied", value="seen.is_applied"),
        Column(
            "error", value="seen.error", about="of planned products from SciPy's, over the sum of abs(a x)"
        ),
        Column("notes", value="seen.notes"),
    ),
}
