"""Plans, and the check of a plan."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from sparsecast.devices import DEVICES
from sparsecast.devices.product_timer import Rounding
from sparsecast.measuring.timing import Speedup
from sparsecast.models.transfer import Setting
from sparsecast.records import Candidate
from sparsecast.results.columns import BUILT, ENERGY, ROUNDING, stored_as
from sparsecast.results.prediction import TRIALS, Trials, threads_sentence
from sparsecast.system.tabular import Column, Columns, Table, Tabular, keys
from sparsecast.system.texts import conversion, counted, energy, interval, percent, time

#: Blocks of a plan that the terminal shows before it says how many follow.
_BLOCKS_SHOWN = 12

#: Of a PlannedBlock.
PLANNED_BLOCK: Columns = (
    Column("", "rows", lambda block: f"{block.first_row:,} to {block.last_row:,}"),
    Column("first_row"),
    Column("last_row", about="belongs to the block"),
    Column("format", value="candidate.format"),
    Column("", "format", lambda block: stored_as(block.candidate)),
    Column("kernel", "kernel", "candidate.kernel"),
    Column("parameters", value="candidate.parameters"),
    Column("time_s", "time"),
    Column("convert_s", "to convert", text=conversion),
    *BUILT,
)

#: Of a Plan.
PLAN: Columns = (
    Column("blocks", columns=PLANNED_BLOCK),
    *keys("products", "time_s", "low_s", "high_s", "convert_s", "built_bytes", "building_bytes", "objective"),
    *(column for column in ENERGY if column.key),
    Column("baseline", columns=(Column("format", value="candidate.format"), Column("time_s"))),
    Column("break_even_products", about="0 where the conversion costs nothing, null where it does not pay"),
    Column("notes"),
    Column("trials", columns=TRIALS, about="null where nothing was measured for it"),
    Column("as_printed"),
    Column(
        "reordered",
        value=lambda plan: plan.order is not None,
        about="whether rows and columns are in another order",
    ),
    ROUNDING,
    Column("threads"),
    Column(
        "thread_plans",
        columns=keys("threads", "time_s", "convert_s", "energy_j"),
        about="of each number of threads that --threads auto compares; else empty",
    ),
)

#: Of a PlanCheck.
CHECK: Columns = (
    *keys("time_s", "baseline_s", "scipy_s", "noise", "convert_s", "error", "gain"),
    Column("speedup", value="over_scipy.factor", about="over SciPy"),
    Column(
        "speedup_deviation", value="over_scipy.deviation", about="of `speedup`, as samples in turn tell it"
    ),
)


@dataclass(frozen=True, slots=True)
class PlannedBlock:
    """One row block and how it will be done.

    `last_row` belongs to the block: it is first_row - 1 for a matrix without rows. The times are forecasts,
    of one product and of building the format; the bytes are as in a Forecast.
    """

    first_row: int
    last_row: int
    candidate: Candidate
    time_s: float
    convert_s: float
    built_bytes: int | None = None
    building_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Plan(Tabular):
    """The way to do `products` products with a matrix.

    Attributes
    ----------
    blocks : tuple of PlannedBlock
        In the order of the rows, often one.
    time_s, low_s, high_s : float
        Forecast of one product, and the sums of the ends of the blocks' intervals; None where one is missing.
    convert_s : float
        Forecast of building all blocks.
    baseline : PlannedBlock
        Plain CSR in one block: no conversion on the CPU, a copy of the matrix on another device.
    break_even_products : int or None
        Products from which on the conversion has paid for itself against the baseline's: 0 where it takes no
        longer, None where the plan is not faster.
    notes : tuple of str
    trials, transferred_from : Trials and Setting, or None
        As in a Prediction.
    as_printed : bool
        Whether it is the plan that a paper prints.
    energy_j, energy_low_j, energy_high_j : float or None
        Forecast joules of one product, and the sums of the ends as of the time; None where no energy was ever
        measured.
    objective : str
        One of OBJECTIVES.
    order : integer array of shape (rows,) or None
        In which rows and columns are stored, and x and y are copied there and back. A solver that keeps its
        vectors in this order saves the copies: ``replace(plan, order=None)`` is the plan of
        ``A[order][:, order]``.
    rounding : Rounding or None
        Of lossy values, which some or all blocks may have; None where none are asked for.
    thread_plans : tuple of Plan
        Of each number of threads that was compared, this one among them; empty where one was asked for.
    """

    blocks: tuple[PlannedBlock, ...]
    products: int
    time_s: float
    low_s: float | None
    high_s: float | None
    convert_s: float
    baseline: PlannedBlock
    break_even_products: int | None
    notes: tuple[str, ...] = ()
    trials: Trials | None = None
    as_printed: bool = False
    transferred_from: Setting | None = None
    energy_j: float | None = None
    energy_low_j: float | None = None
    energy_high_j: float | None = None
    objective: str = "time"
    order: NDArray[Any] | None = field(default=None, compare=False, repr=False)
    rounding: Rounding | None = None
    thread_plans: tuple[Plan, ...] = ()

    def table(self, title: str = "") -> Table:
        """Return a row for each row block."""
        products = counted(self.products, "product")
        spare = f"Plan for {products} of {time(self.time_s)}, CSR {time(self.baseline.time_s)}"
        return Table(title or spare, PLANNED_BLOCK, self.blocks, most=_BLOCKS_SHOWN)

    def sentences(self, profile: str) -> list[str]:
        """Return what the plan comes to on the machine of a profile."""
        span = "interval unknown" if self.low_s is None else interval(self.low_s, self.high_s)
        sentences = [
            f"One product on {profile}: {time(self.time_s)} ({span}), plain CSR {time(self.baseline.time_s)}."
        ]
        if self.energy_j is not None:
            what = "" if self.objective == "time" else f", the least {self.objective}"
            sentences.append(f"Energy of one product: {energy(self.energy_j)}{what}.")
        if self.thread_plans:
            times_s = {plan.threads: plan.time_s for plan in self.thread_plans}
            sentences.append(threads_sentence(self.threads, times_s))
        took, pays = time(self.convert_s), ""
        if self.break_even_products:
            enough = counted(self.break_even_products, "product")
            pays = f"pays off from {enough} on (you asked for {self.products:,})"
        if not DEVICES.get(self.device).shares_host:
            baseline = f", {time(self.baseline.convert_s)} as plain CSR; it {pays}" if pays else ""
            sentences.append(f"Building it and copying it to the device takes {took}{baseline}.")
        elif self.convert_s == 0:
            products = counted(self.products, "product")
            sentences.append(f"Nothing to convert: for {products} plain CSR arrays are best.")
        elif self.break_even_products is None:
            sentences.append(f"Conversion takes {took} and does not pay.")
        else:
            sentences.append(f"Conversion takes {took} and {pays or 'pays at once'}.")
        return sentences

    def csr_alone(self, time_s: float) -> Plan:
        """Return the plan of plain CSR, with another forecast of its product and so no interval."""
        csr = replace(self.baseline, time_s=time_s)
        return replace(
            self,
            blocks=(csr,),
            order=None,
            baseline=csr,
            time_s=time_s,
            low_s=None,
            high_s=None,
            convert_s=csr.convert_s,
            break_even_products=0,
        )

    @property
    def built_bytes(self) -> int:
        """Memory of all blocks beside the matrix, as far as it is known."""
        return sum(block.built_bytes or 0 for block in self.blocks)

    @property
    def building_bytes(self) -> int:
        """The most while it is built, as far as it is known; without the copy in another order."""
        beside = [(block.building_bytes or 0) - (block.built_bytes or 0) for block in self.blocks]
        return self.built_bytes + max(beside, default=0)

    @property
    def device(self) -> str:
        """Name of the device of its Candidates."""
        return self.baseline.candidate.device

    @property
    def threads(self) -> int:
        """Number of threads of its Candidates."""
        return self.baseline.candidate.threads


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """Measured times of a plan and of what it is compared with."""

    time_s: float  # of a product by the plan's operator
    baseline_s: float  # of plain CSR
    scipy_s: float  # of SciPy's ``A @ x``
    noise: float | None  # the largest of these Timings; None of single samples
    convert_s: float  # to build the operator
    error: float  # as in a Record
    over_scipy: Speedup  # of the plan's operator

    @property
    def gain(self) -> float:
        """Time of plain CSR over that of the plan, minus 1."""
        return self.baseline_s / self.time_s - 1

    def table(self, plan: Plan) -> Table:
        """Return the measured times beside the forecasts of the plan."""
        rows = (
            ("the plan", self.time_s, plan.time_s, 1.0),
            ("plain CSR", self.baseline_s, plan.baseline.time_s, self.baseline_s / self.time_s),
            ("SciPy, one thread", self.scipy_s, None, self.scipy_s / self.time_s),
        )
        below = (
            f"noise {percent(self.noise)}, converted in {time(self.convert_s)}, "
            f"largest relative error against the reference result {self.error:.1e}"
        )
        return Table("Measured in turn", _WAY_CHECKED, rows, (below,))

    def sentence(self, plan: Plan) -> str:
        """Return the speed of the plan beside that of SciPy."""
        storages = {stored_as(block.candidate) for block in plan.blocks}
        return f"{'The plan' if len(storages) > 1 else storages.pop()} is {self.over_scipy} as SciPy."


_WAY_CHECKED: Columns = (
    Column("way", "way", lambda row: row[0]),
    Column("measured_s", "one product", lambda row: row[1]),
    Column("forecast_s", "forecast", lambda row: row[2]),
    Column("ratio", "against the plan", lambda row: row[3], "{:.2f} x".format),
)


def amount(objective: str, time_s: float, joules: float | None) -> float:
    """Return what an objective makes least; other than for time, the joules are known."""
    if objective == "time" or joules is None:
        return time_s
    return joules * time_s if objective == "edp" else joules
