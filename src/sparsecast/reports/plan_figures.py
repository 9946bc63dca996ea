"""The figure of a plan: its row blocks over the matrix, and the time of all products, conversion paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.reports.figures import MEASURED, drawing, error_bars, format_looks, looks, scale_axis
from sparsecast.reports.pages.spy import Spy, spy
from sparsecast.reports.structure_figures import draw_spy
from sparsecast.results.plan import Placements, Plan, PlanCheck

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A mark through which the forecast is seen.
_MEASURED = {**MEASURED, "markerfacecolor": "none", "markersize": 9}

#: Points of a line of times over products.
_POINTS = 60


@dataclass(frozen=True, slots=True)
class BlockBand:
    """The rows of one block of a plan, `end_row` not among them."""

    first_row: int
    end_row: int
    format: str


@dataclass(frozen=True, slots=True)
class TotalLine:
    """Seconds of n products: `start_s` + n `time_s`; what was measured is None where nothing was.

    Attributes
    ----------
    start_s : float
        Of the conversion, and of copies to and from a device.
    """

    label: str
    start_s: float
    time_s: float
    low_s: float | None = None
    high_s: float | None = None
    measured_start_s: float | None = None
    measured_s: float | None = None

    def total_s(self, products: float) -> float:
        """Return the forecast seconds of so many products."""
        return self.start_s + products * self.time_s

    def ends_s(self, products: float) -> tuple[float | None, float | None]:
        """Return the ends of the interval; the forecast of the conversion has none."""
        low, high = (
            None if end is None else self.start_s + products * end for end in (self.low_s, self.high_s)
        )
        return low, high

    def measured_total_s(self, products: float) -> float | None:
        """Return what the measured times come to."""
        if self.measured_s is None or self.measured_start_s is None:
            return None
        return self.measured_start_s + products * self.measured_s


@dataclass(frozen=True, slots=True, eq=False)
class PlanPicture:
    """What the figure of a plan shows.

    Attributes
    ----------
    products : int
        That are asked for.
    break_even : int or None
        Products from which on the first line lies below the last one; None where it never does, or always.
    """

    spy: Spy
    blocks: tuple[BlockBand, ...]
    lines: tuple[TotalLine, ...]
    products: int
    break_even: int | None


def plan_picture(
    A: csr_array[Any], made: Plan, check: PlanCheck | None = None, places: Placements | None = None
) -> PlanPicture:
    """Return what is drawn of a plan; plain CSR is the last line, unless it is the plan itself."""
    blocks = tuple(
        BlockBand(each.first_row, each.last_row + 1, each.candidate.format) for each in made.blocks
    )
    name = " + ".join(dict.fromkeys(each.format.upper() for each in blocks))
    measured = (None, None) if check is None else (check.convert_s, check.time_s)
    if places is None:
        lines = [
            TotalLine(f"the plan: {name}", made.convert_s, made.time_s, made.low_s, made.high_s, *measured)
        ]
    else:
        lines = [
            TotalLine(
                f"plan on {each.plan.device}",
                each.before_s,
                each.plan.time_s,
                each.plan.low_s,
                each.plan.high_s,
                *(measured if each is places.best else (None, None)),
            )
            for each in places.placements
        ]
    is_plain = len(blocks) == 1 and made.blocks[0].candidate == made.baseline.candidate
    if places is None and not is_plain:
        baseline_s = None if check is None else check.baseline_s
        start_s = None if check is None or made.baseline.convert_s else 0.0
        plain = TotalLine(
            "plain CSR", made.baseline.convert_s, made.baseline.time_s, None, None, start_s, baseline_s
        )
        lines.append(plain)
    even = made.break_even_iterations if places is None else places.break_even_iterations
    return PlanPicture(spy(A), blocks, tuple(lines), made.iterations, even if even and even > 1 else None)


def draw_plan(shown: PlanPicture, title: str, path: Path) -> None:
    """Draw the row blocks over the matrix, and the time over the number of products, into a file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with drawing(path, 9.8, 4.4, title) as figure:
        blocks, totals = figure.subplots(1, 2, width_ratios=(1, 1.15))
        _draw_blocks(blocks, shown)
        _draw_totals(totals, shown)


def _draw_blocks(ax: Axes, shown: PlanPicture) -> None:
    """Draw the entries in the colours of their formats, and beside them a strip with colours and hatches."""
    from matplotlib.patches import Patch, Rectangle

    own = format_looks(each.format for each in shown.blocks)
    draw_spy(
        ax, shown.spy, [(each.first_row, each.end_row, own[each.format].colour) for each in shown.blocks]
    )
    for each in shown.blocks:
        corner, height = (1.02, each.first_row), each.end_row - each.first_row
        look = own[each.format]
        ax.add_patch(
            Rectangle(
                corner,
                0.05,
                height,
                transform=ax.get_yaxis_transform(),
                clip_on=False,
                facecolor=look.colour,
                hatch=look.hatch,
                edgecolor="white",
                linewidth=0.6,
            )
        )
    formats = dict.fromkeys(each.format for each in shown.blocks)
    handles = [
        Patch(facecolor=own[name].colour, hatch=own[name].hatch, edgecolor="white", label=name.upper())
        for name in formats
    ]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4, handleheight=1.2)
    count = len(shown.blocks)
    ax.set_title(f"{count:,} row block{'' if count == 1 else 's'}")


def _draw_totals(ax: Axes, shown: PlanPicture) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.ticker import NullFormatter

    most = 10 * max(shown.products, shown.break_even or 1)
    products = np.geomspace(1, most, _POINTS)
    styles = looks(line.label for line in shown.lines)
    values: list[float] = []
    for line, dashes in zip(shown.lines, _dashes(len(shown.lines)), strict=True):
        look = styles[line.label]
        seconds = [line.total_s(n) for n in products]
        values += seconds
        ax.plot(products, seconds, color=look.colour, linestyle=dashes, label=line.label)
        at = line.total_s(shown.products)
        low, high = line.ends_s(shown.products)
        bars = np.transpose(error_bars([at], [low], [high])).reshape(2, 1)
        ax.errorbar(shown.products, at, yerr=bars, color=look.colour, marker=look.mark, capsize=3)
        measured_s = line.measured_total_s(shown.products)
        if measured_s is not None:
            ax.plot(shown.products, measured_s, **_MEASURED, zorder=3)
    if shown.break_even is not None:
        ax.axvline(shown.break_even, color="#555555", linewidth=0.8, linestyle=":")
        ax.annotate(
            f"pays from {shown.break_even:,} on",
            (shown.break_even, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            fontsize=8,
        )
    scale_axis(ax.yaxis, values, "s")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda count, place: f"{count:,.0f}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("products")
    ax.set_ylabel("conversion and all products")
    ax.set_title(f"marks and intervals at {shown.products:,} products")
    handles, _ = ax.get_legend_handles_labels()
    if any(line.measured_s is not None for line in shown.lines):
        handles = [*handles, Line2D([], [], **_MEASURED, label="measured")]
    ax.legend(handles=handles, loc="upper left", frameon=True, facecolor="white", edgecolor="none")


def _dashes(count: int) -> Sequence[str]:
    return [("-", "--", "-.", ":")[place % 4] for place in range(count)]
