"""The sparse products of a program, and what plans save of their time."""

from __future__ import annotations

from dataclasses import dataclass

from sparsecast.operators.scipy_products import Counted
from sparsecast.results.columns import stored_as
from sparsecast.results.plan import Plan
from sparsecast.system.tabular import Column, Columns, Table, Tabular, keys
from sparsecast.system.texts import counted, interval, percent, time

#: Rows that the terminal shows before it says how many follow.
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class SeenProducts:
    """Products that were counted, and the plan for them.

    Attributes
    ----------
    counted : Counted
    run_s : float
        Seconds of the whole run.
    is_applied : bool
        Whether plans did products while the program ran.
    plan : Plan or None
        For as many products; with `is_applied`, for as many as had been done.
    planning_s : float or None
        Seconds that it took to look for a plan and to build it; None where nothing was looked for.
    unplanned : str
        Why there is no plan.
    """

    counted: Counted
    run_s: float
    is_applied: bool = False
    plan: Plan | None = None
    planning_s: float | None = None
    unplanned: str = ""

    @property
    def saving_s(self) -> float | None:
        """Seconds that the plan saves, the plan itself paid; 0 where SciPy is as fast.

        With `is_applied`, what the products of the plan would have taken in SciPy, less what they took.
        """
        if not self.is_applied or self.planning_s is None:
            return self._saved("time_s")
        done, in_scipy = self.counted, self.counted.products - self.counted.replaced
        scipy_s: float = (done.time_s - done.replaced_s) / in_scipy
        return scipy_s * done.replaced - done.replaced_s - self.planning_s

    @property
    def saving_low_s(self) -> float | None:
        return self._saved("high_s")

    @property
    def saving_high_s(self) -> float | None:
        return self._saved("low_s")

    def _saved(self, end: str) -> float | None:
        product_s: float | None = getattr(self.plan, end, None)
        if product_s is None or self.planning_s is None or self.is_applied:
            return None
        return max(0.0, self.counted.time_s - self.counted.products * product_s - self.planning_s)

    @property
    def storage(self) -> str | None:
        """The formats of the plan, joined by a plus; None without a plan."""
        blocks = self.plan.blocks if self.plan else ()
        return " + ".join(dict.fromkeys(stored_as(block.candidate) for block in blocks)) or None


def _of_kind(name: str, heading: str = "", about: str = "") -> Column:
    return Column(name, heading, f"counted.kind.{name}", about=about)


#: Of SeenProducts.
SEEN: Columns = (
    _of_kind("place", "first at", "file and line of the program that asks for the first of the products"),
    Column("format", "matrix", "counted.kind.format", str.upper),
    Column(
        "transposed", "transposed", "counted.is_transposed", about="the program's matrix is that of A^T x"
    ),
    *(_of_kind(name, heading) for name, heading in {"rows": "rows", "cols": "", "nnz": "entries"}.items()),
    *map(_of_kind, ("dtype", "vector_dtype")),
    Column("matrices", value="counted.matrices", about="whose products are added up: of one shape and place"),
    Column("changed", value="counted.has_changed", about="whether values were seen to change, in a sample"),
    _of_kind("vectors", "vectors"),
    Column("products", "products", "counted.products"),
    Column("time_s", "time", "counted.time_s", about="of all these products"),
    Column("share", "share", lambda row: row.counted.time_s / row.run_s, percent, about="of the whole run"),
    Column(
        "planned",
        "planned",
        lambda row: row.counted.replaced if row.is_applied else None,
        about="products that --apply did by a plan; null without it",
    ),
    Column("planned_s", value=lambda row: row.counted.replaced_s if row.is_applied else None),
    Column("plan", "plan", "storage", about="null where there is none, which `unplanned` explains"),
    Column("plan_s", value="plan.time_s", about="of one product"),
    Column("planning_s", about="to look for the plan and to build it"),
    Column("saving_s", "saves", about="of all products, the plan itself paid"),
    *keys("saving_low_s", "saving_high_s"),
    Column("", "interval", lambda row: _span(row) if row.saving_low_s is not None else None),
    Column("unplanned"),
)


def _span(saved: SeenProducts | Seen) -> str:
    return interval(saved.saving_low_s, saved.saving_high_s)


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
        Largest difference between a planned product and that of SciPy, over the sum of abs(a x) of its row;
        None where there is none.
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

    @property
    def saving_s(self) -> float | None:
        """Seconds that all plans save; None where there is none."""
        return self._sum("saving_s")

    @property
    def saving_low_s(self) -> float | None:
        return self._sum("saving_low_s")

    @property
    def saving_high_s(self) -> float | None:
        return self._sum("saving_high_s")

    def _sum(self, name: str) -> float | None:
        saved = [getattr(row, name) for row in self.products if row.planning_s is not None]
        return None if not saved or None in saved else sum(saved)

    def table(self, title: str = "") -> Table:
        """Return a row for each matrix, the longest time first."""
        return Table(title or "Sparse products with SciPy", SEEN, self.products, most=_SHOWN)

    def sentences(self) -> list[str]:
        """Return where the time of the run is, and what plans save of it."""
        done = sum(row.counted.products for row in self.products)
        if not done:
            return [f"No sparse product with SciPy in a run of {time(self.run_s)}."]
        share, saved = percent(self.time_s / self.run_s), self.saving_s
        said = [
            f"{counted(done, 'product')} took {time(self.time_s)}, {share} of the run of {time(self.run_s)}."
        ]
        if self.is_applied and self.error is not None and saved is not None:
            planned = sum(row.counted.replaced for row in self.products)
            less = f"{time(abs(saved))} {'less' if saved > 0 else 'more'} than in SciPy"
            said.append(
                f"{counted(planned, 'product')} were done by plans: {less}, the plans themselves paid."
            )
            said.append(
                f"Results agree with SciPy's within rounding: they differ by up to {self.error:.1e} of "
                f"the sum of abs(a x), at the products where they were compared."
            )
        elif self.is_applied:
            said.append("No product was done by a plan: none pays.")
        elif saved:
            less = f"{time(saved)} less ({_span(self)}), the plans themselves paid"
            said.append(f"By plans they would take {less}: the run would take {time(self.run_s - saved)}.")
        elif saved is not None:
            said.append("Plans would save nothing: SciPy's products are as fast.")
        return said


#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "run": (
        *keys("program", "status"),
        Column("run_s", value="seen.run_s", about="of the program alone"),
        Column("time_s", value="seen.time_s", about="of all products"),
        Column("products", value="seen.products", columns=SEEN, about="the longest time first"),
        Column("saving_s", value="seen.saving_s", about="of all plans; null where there is none"),
        *(Column(name, value=f"seen.{name}") for name in ("saving_low_s", "saving_high_s")),
        Column("applied", value="seen.is_applied"),
        Column(
            "error", value="seen.error", about="of planned products from SciPy's, over the sum of abs(a x)"
        ),
        Column("notes", value="seen.notes"),
    ),
}
