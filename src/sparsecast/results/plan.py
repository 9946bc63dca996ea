"""Plans, placements on devices, and the check of a plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sparsecast.models.transfer import Setting
from sparsecast.records import Candidate
from sparsecast.results.prediction import Probe
from sparsecast.system.tabular import Tabular


@dataclass(frozen=True, slots=True)
class PlannedBlock:
    """One row block and how it will be done.

    `last_row` belongs to the block: it is first_row - 1 for a matrix without rows. The times are forecasts,
    of one product and of building the format.
    """

    first_row: int
    last_row: int
    candidate: Candidate
    time_s: float
    convert_s: float


@dataclass(frozen=True, slots=True)
class Plan(Tabular):
    """The way to do `iterations` products with a matrix.

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
    break_even_iterations : int or None
        Products from which on the conversion has paid for itself against the baseline's: 0 where it takes no
        longer, None where the plan is not faster.
    notes : tuple of str
    probe, transferred_from : Probe and Setting, or None
        As in a Prediction.
    as_printed : bool
        Whether it is the plan that Guo et al. (2014) print.
    energy_j, energy_low_j, energy_high_j : float or None
        Forecast joules of one product, and the sums of the ends as of the time; None where no energy was ever
        measured.
    objective : str
        One of OBJECTIVES.
    """

    blocks: tuple[PlannedBlock, ...]
    iterations: int
    time_s: float
    low_s: float | None
    high_s: float | None
    convert_s: float
    baseline: PlannedBlock
    break_even_iterations: int | None
    notes: tuple[str, ...] = ()
    probe: Probe | None = None
    as_printed: bool = False
    transferred_from: Setting | None = None
    energy_j: float | None = None
    energy_low_j: float | None = None
    energy_high_j: float | None = None
    objective: str = "time"

    def table_rows(self) -> list[dict[str, Any]]:
        """Return a row for each row block."""
        return [
            {
                "first_row": block.first_row,
                "last_row": block.last_row,
                "format": block.candidate.format,
                "kernel": block.candidate.kernel,
                "time_s": block.time_s,
                "convert_s": block.convert_s,
            }
            for block in self.blocks
        ]

    def table_caption(self) -> str:
        """Return how many products it is for, and what one takes."""
        return (
            f"Plan for {self.iterations:,} products of {self.time_s:.3g} s, CSR {self.baseline.time_s:.3g} s"
        )

    @property
    def device(self) -> str:
        """Name of the device of its Candidates."""
        return self.baseline.candidate.device


@dataclass(frozen=True, slots=True)
class Placement:
    """A plan on a device, for a matrix and vectors that lie on the host before and after.

    Attributes
    ----------
    profile : str
        Its name.
    plan : Plan
        Its conversion includes the transfer of the matrix.
    transfer_s : float
        Forecast seconds to bring x to the device and y back, once; 0 on the host.
    """

    profile: str
    plan: Plan
    transfer_s: float

    @property
    def before_s(self) -> float:
        """Seconds before the first product and after the last, if the vectors stay on the device."""
        return self.plan.convert_s + self.transfer_s

    @property
    def total_s(self) -> float:
        """Seconds of all products, if the vectors travel once."""
        return self.before_s + self.plan.iterations * self.plan.time_s

    @property
    def travelling_s(self) -> float:
        """Seconds of all products, if x and y travel for every one."""
        return self.plan.convert_s + self.plan.iterations * (self.plan.time_s + self.transfer_s)


@dataclass(frozen=True, slots=True)
class Placements:
    """The placements of a matrix, the one with the least `total_s` first.

    Attributes
    ----------
    break_even_iterations : int or None
        Number of products from which on the placement with the fastest product is the best, by its plan or
        by plain CSR. 1 if it always is; None if there is only one placement, or if its product saves nothing.
    refused : dict of str to str
        Devices whose memory is too small for the matrix, with the message.
    """

    placements: tuple[Placement, ...]
    break_even_iterations: int | None
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def best(self) -> Placement:
        """The placement with the least `total_s`."""
        return self.placements[0]

    @property
    def fastest(self) -> Placement:
        """The placement with the fastest single product; of equals the one that is the soonest ready."""
        return min(self.placements, key=lambda placement: (placement.plan.time_s, placement.before_s))


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """Measured times of a plan and of what it is compared with.

    Attributes
    ----------
    time_s, baseline_s, scipy_s : float
        Seconds a product: the plan's operator, plain CSR, SciPy's ``A @ x``.
    noise : float or None
        The largest of these Timings; None of single samples.
    convert_s : float
        Seconds to build the operator.
    error : float
        As in a Record.
    """

    time_s: float
    baseline_s: float
    scipy_s: float
    noise: float | None
    convert_s: float
    error: float

    @property
    def gain(self) -> float:
        """Time of plain CSR over that of the plan, minus 1."""
        return self.baseline_s / self.time_s - 1
