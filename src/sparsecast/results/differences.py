"""Two sets of Records of the same products: which times differ, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sparsecast.records import Candidate
from sparsecast.results.columns import CANDIDATE, within
from sparsecast.system.tabular import Column, Columns, Table, Tabular, keys
from sparsecast.system.texts import counted, percent


@dataclass(frozen=True, slots=True)
class Difference:
    """The times of one product in A and B."""

    matrix: str
    #: specification, machine, candidate: of B; `kernel_before` is the kernel in A.
    specification: str
    machine: str
    candidate: Candidate
    kernel_before: str
    #: time_a_s, time_b_s: geometric means of the times of the Records; `low` and `high` are the interval of
    #: their ratio for 95 of 100 cases. The interval, `p_value` and `differs` are None where the noise is
    #: unknown.
    time_a_s: float
    time_b_s: float
    low: float | None
    high: float | None
    p_value: float | None  # probability of such a difference by chance, corrected for the number of products
    differs: bool | None  # whether the times differ beyond the noise
    samples_a: int
    samples_b: int

    @property
    def ratio(self) -> float:
        """Time in B over that in A."""
        return self.time_b_s / self.time_a_s

    @property
    def other_kernel(self) -> str | None:
        """The kernel in A where B has another one."""
        return None if self.kernel_before == self.candidate.kernel else self.kernel_before


@dataclass(frozen=True, slots=True)
class GeometricMean:
    """Geometric mean of ratios; its interval, None for a single matrix, is from matrices drawn anew."""

    ratio: float
    low: float | None
    high: float | None
    products: int

    def __str__(self) -> str:
        ends = "" if self.low is None else f" ({self.low:.3f} to {self.high:.3f})"
        return f"{self.ratio:.3f}{ends}"


@dataclass(frozen=True)
class Differences(Tabular):
    """What differs between A and B."""

    rows: Sequence[Difference]  # those that differ come first, each part by the size of the change
    mean: GeometricMean
    formats: Mapping[str, GeometricMean]
    #: Standard deviation of a measured time, relative, by `repeats` measurements of something that was
    #: measured several times; with 0 of them, by what most products differ by, or, on two machines, by the
    #: earlier and later samples of each Record. None if they have none.
    deviation: float | None
    repeats: int
    #: only_a, only_b: products in one of them alone.
    only_a: int
    only_b: int
    across: bool  # whether A and B are of two machines

    def table(self) -> Table:
        """Return a row for each product."""
        has_machines = len({row.machine for row in self.rows}) > 1
        columns = (Column("machine", "machine" * has_machines), *DIFFERENCE)
        return Table("Time in B over time in A", columns, self.rows, most=30)

    def differing(self) -> list[Table]:
        """Return the table of the products that differ; none if none does."""
        rows = [row for row in self.rows if row.differs]
        return [replace(self.table(), rows=rows)] if rows else []

    def means(self) -> Table:
        """Return the geometric mean of each format."""
        rows = [{"format": name, "mean": mean} for name, mean in self.formats.items()]
        return Table(f"Geometric mean of B / A: {self.mean}", _MEANS, rows)

    def sentences(self) -> list[str]:
        """Return what differs, and what the noise is known from, in words."""
        differing = [row for row in self.rows if row.differs]
        slower = sum(row.ratio > 1 for row in differing)
        products = counted(len(self.rows), "product")
        found = [
            f"Of {products} in both, {len(differing):,} differ beyond the noise: "
            f"{slower:,} slower in B, {len(differing) - slower:,} faster."
        ]
        if unknown := sum(row.differs is None for row in self.rows):
            found = found if unknown < len(self.rows) else [f"In both: {products}."]
            found.append(
                f"The noise of {unknown:,} is unknown (no repeats, no samples), and so whether they differ."
            )
        known = "within single measurements" if self.across else "by what most products differ"
        known += ", as nothing was measured several times"
        if self.repeats:
            known = f"by {counted(self.repeats, 'measurement')} of what was measured several times"
        if self.deviation is not None:
            found.append(f"Noise: {percent(self.deviation)} (standard deviation of a time), {known}.")
        if self.only_a or self.only_b:
            found.append(f"Only in A: {counted(self.only_a, 'product')}; only in B: {self.only_b:,}.")
        return found

    def slower(self, above: float) -> list[Difference]:
        """Return what takes longer in B by more than this share, whatever of its interval is true."""
        return [row for row in self.rows if row.differs and row.low is not None and row.low > 1 + above]

    def failure(self, above: float) -> str:
        """Return what is surely slower in B than in A by more than a share; empty if nothing is."""
        if slower := self.slower(above):
            worst = max(slower, key=lambda row: row.ratio)
            return (
                f"{counted(len(slower), 'product')} slower by more than {percent(above)}, beyond the noise; "
                f"{worst.matrix} in {worst.candidate.format} by {percent(worst.ratio - 1)}"
            )
        if self.mean.low is not None and self.mean.low > 1 + above:
            slower_by = percent(self.mean.ratio - 1)
            return f"all products together slower by {slower_by}: more than {percent(above)}"
        return ""


#: Of a Difference.
DIFFERENCE: Columns = (
    Column("matrix", "matrix"),
    Column("specification"),
    *within("candidate", (*CANDIDATE, Column("", "threads", "threads"))),
    Column("", "kernel in A", "other_kernel"),
    Column("kernel_before", about="the kernel in A"),
    Column("time_a_s", "A"),
    Column("time_b_s", "B"),
    Column("ratio", "B / A", text="{:.3f}".format),
    Column("", "interval", lambda row: None if row.low is None else f"{row.low:.3f} - {row.high:.3f}"),
    *keys("low", "high"),
    Column("p_value", about="corrected for the number of products"),
    Column("differs", about="null, as the interval and the probability, where the noise is unknown"),
    *keys("samples_a", "samples_b"),
)

_GEOMETRIC_MEAN: Columns = keys("ratio", "low", "high", "products")

_MEANS: Columns = (
    Column("format", "format", text=str.upper),
    Column("mean", "B / A", columns=_GEOMETRIC_MEAN, text=str),
    Column("", "products", "mean.products"),
)

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "compare-results": (
        Column("products", value="rows", columns=(Column("machine"), *DIFFERENCE)),
        Column("mean", columns=_GEOMETRIC_MEAN, about="geometric, of time in B over time in A"),
        Column("formats", columns=_GEOMETRIC_MEAN, by="format"),
        Column("deviation", about="standard deviation of a measured time, relative; null if unknown"),
        *keys("repeats", "only_a", "only_b"),
        Column("across", about="whether A and B are of two machines"),
    )
}
