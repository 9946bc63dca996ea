"""How figures look and are written: the one place of their colours, marks, axes and files.

A figure has one function that gathers its data, which needs no matplotlib, and one that draws them.
"""

from __future__ import annotations

import importlib.util
import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecast.errors import InputError
from sparsecast.formats import FORMATS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

#: Told apart by the colour-blind: Okabe and Ito (2008), and two more where a figure has as many formats.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#B8A800", "#777777", "#7B4FA3")

#: Beside the colours, for those who see none: one more than the colours, so that pairs recur late.
_MARKS = ("o", "s", "^", "v", "P", "X", "<", ">", "p", "h")
_HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "||||", "++++", "oooo", "**")

#: What was measured, wherever forecasts stand beside it.
MEASURED: dict[str, Any] = {
    "marker": "D",
    "color": "black",
    "markerfacecolor": "white",
    "markersize": 5,
    "linestyle": "none",
}

#: Kinds of files that a figure is written as.
FILE_TYPES = (".png", ".svg", ".pdf")

#: Of all figures. Dollar signs in names of files begin no formulas; the texts of an SVG stay texts.
_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.facecolor": "white",
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "figure.facecolor": "white",
    "figure.titlesize": 11,
    "font.family": "sans-serif",
    "font.size": 9,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 5,
    "pdf.fonttype": 42,
    "savefig.dpi": 150,
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "xtick.labelsize": 8,
    "xtick.major.width": 0.6,
    "ytick.labelsize": 8,
    "ytick.major.width": 0.6,
}

#: Letters of a title that an inch holds.
_TITLE_LETTERS = 10.5

#: Quantities whose largest is so many times the smallest have a logarithmic axis.
_WIDE = 8.0


@dataclass(frozen=True, slots=True)
class Look:
    """How one of several things is drawn: each of the three tells it from the others."""

    colour: str
    mark: str
    hatch: str


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Return a look for each name, in their order."""
    return {
        name: Look(
            COLOURS[place % len(COLOURS)], _MARKS[place % len(_MARKS)], _HATCHES[place % len(_HATCHES)]
        )
        for place, name in enumerate(dict.fromkeys(names))
    }


def format_looks(names: Iterable[str]) -> dict[str, Look]:
    """Return the look of each format: the same in all figures; formats of others follow the known ones."""
    return looks((*sorted(FORMATS.names()), *sorted(names)))


def refuse_undrawable(path: Path) -> None:
    """Raise if no figure can be drawn to a file of this name: before anything is measured for it.

    Raises
    ------
    InputError
        If matplotlib is missing, or writes no files of that kind.
    """
    if path.suffix not in FILE_TYPES:
        raise InputError(f"figure {path}: expected a name that ends in {', '.join(FILE_TYPES)}; name it so")
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError(
            f"figure {path} needs the Python package matplotlib: expected it to be installed; "
            f"pip install 'sparsecast[report]'"
        )


@contextmanager
def drawing(path: Path, width: float, height: float, title: str = "") -> Iterator[Figure]:
    """Give an empty figure of so many inches in the style of all; at the end, write it into a file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    import matplotlib
    from matplotlib.figure import Figure

    style: Any = _STYLE  # matplotlib names each of its keys as a type
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        if title:
            figure.suptitle(textwrap.fill(title, int(_TITLE_LETTERS * width), break_on_hyphens=False))
        yield figure
        try:
            figure.savefig(path)
        except OSError as error:
            raise unwritable(f"figure {path}", error) from error


def unwritable(what: str, error: OSError) -> InputError:
    """Return the error for a file that the system does not let be written."""
    return InputError(
        f"{what} cannot be written ({error.strerror or error}): expected a file in a writable folder; "
        f"name another"
    )


def scale_axis(axis: Axis, values: Iterable[float | None], unit: str = "") -> None:
    """Scale an axis for the values on it: logarithmic where they are far apart, otherwise from 0.

    Ticks have the unit with its SI prefix.
    """
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    known = [value for value in values if value is not None and value > 0]
    ratio = max(known) / min(known) if known else 1.0
    if ratio > _WIDE:
        set_scale(axis, "log")
        subs = (1.0, 2.0, 5.0) if ratio < 30 else (1.0, 3.0) if ratio < 1000 else (1.0,)
        axis.set_major_locator(LogLocator(subs=subs, numticks=12))
        axis.set_minor_formatter(NullFormatter())
    else:
        set_end(axis, 1.12 * max(known, default=1.0))
    axis.set_major_formatter(EngFormatter(unit=unit))


def set_scale(axis: Axis, scale: str, **more: Any) -> None:
    """Set the scale of an axis of either direction."""
    ax = axis.axes
    (ax.set_xscale if axis is ax.xaxis else ax.set_yscale)(scale, **more)


def set_end(axis: Axis, end: float) -> None:
    """Let an axis go from 0 to its end."""
    ax = axis.axes
    (ax.set_xlim if axis is ax.xaxis else ax.set_ylim)(0, end)


def draw_counts(axis: Axis, counts: Sequence[int]) -> None:
    """Scale an axis of numbers of ranks, products and the like: powers of 2, each of them named."""
    from matplotlib.ticker import NullFormatter, NullLocator

    if max(counts) > min(counts):
        set_scale(axis, "log", base=2)
    every = sorted(set(counts))
    shown = every[:: math.ceil(len(every) / 12)]
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_ticks(shown, [f"{count:,}" for count in shown])


def error_bars(
    values: Sequence[float], lows: Sequence[float | None], highs: Sequence[float | None]
) -> tuple[list[float], list[float]]:
    """Return how far intervals reach below and above their values, not a number where one is not known.

    An interval need not hold its value: where it does not, that side has no length.
    """
    below = [
        math.nan if low is None else max(0.0, value - low) for value, low in zip(values, lows, strict=True)
    ]
    above = [
        math.nan if high is None else max(0.0, high - value)
        for value, high in zip(values, highs, strict=True)
    ]
    return below, above


def hide(axes: Iterable[Axes]) -> None:
    """Hide the panels that are left over."""
    for ax in axes:
        ax.set_visible(False)
