"""Reports of labels and forecasts of blocks: JSON documents, sentences, and pictures."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.papers.barreda_2020.features.entry_blocks import BLOCK_ENTRIES
from sparsecast.reports.figures import COLOURS, drawing, scale_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sparsecast.papers.barreda_2020.block_forecast import BlockForecast
    from sparsecast.papers.barreda_2020.labelling import Labelling


def labelling(done: Labelling) -> dict[str, Any]:
    """Return the document of a run of `label`."""
    return {
        "matrices": len(done.labelled),
        "blocks": done.blocks,
        "known": done.known,
        "refused": done.refused,
        "left": done.left,
        "used_s": done.used_s,
        "labelling_s": done.labelling_s,
        "blocks_per_s": done.blocks / done.used_s if done.labelled else None,
        "repeat_noise": _repeat_noise(done),
    }


def _repeat_noise(done: Labelling) -> dict[str, float | None] | None:
    """Return the median relative difference of labels that were measured twice, by kind; None without."""
    if not done.labelled:
        return None
    pairs = {
        "streaming": [(each.streaming_ns, each.streaming_again_ns) for each in done.labelled],
        "hot": [(each.hot_ns, each.hot_again_ns) for each in done.labelled],
        "energy": [(each.energy_nj, each.energy_again_nj) for each in done.labelled],
    }
    differences = {
        kind: np.concatenate([np.abs(again / first - 1) for first, again in own])
        for kind, own in pairs.items()
    }
    return {kind: float(np.median(each)) if len(each) else None for kind, each in differences.items()}


def labelling_sentence(done: Labelling) -> str:
    """Return in words what a run of `label` did."""
    noise = _repeat_noise(done)
    said = f"{len(done.labelled):,} matrices labelled, {done.blocks:,} blocks; {done.known:,} had labels"
    if done.left:
        said += f"; {done.left:,} are left, and the next run begins with them"
    if noise is None:
        return said + "."
    rate = done.blocks / done.used_s
    return (
        f"{said}. {done.used_s:.0f} s, {done.labelling_s:.0f} s of them measuring: "
        f"{rate:,.0f} blocks a second, {3600 * rate / 1e6:.1f} million an hour. Measured twice, a block "
        f"differs by {noise['streaming']:.1%} within a product and by "
        f"{noise['hot']:.1%} where it is repeated in place.{_energy_sentence(done, noise['energy'])}"
    )


def _energy_sentence(done: Labelling, noise: float | None) -> str:
    """Return in words whose joules were counted."""
    if noise is None:
        return " No meter counted their joules."
    counted = sum(len(each.energy_nj) for each in done.labelled)
    sources = sorted({each.energy_source for each in done.labelled if each.energy_source})
    return f" Joules of {counted:,} blocks by {', '.join(sources)}: counted twice they differ by {noise:.1%}."


#: Stretches of blocks in a picture in the terminal, and characters from fast to slow.
_STRETCHES, _SHADES = 64, " .:-=+*#%@"

#: Stretches that a picture names: the slowest.
_SLOWEST = 5


def blocks(found: BlockForecast) -> dict[str, Any]:
    """Return the document of a forecast block by block."""
    return {
        "matrix": {"name": found.matrix, "rows": found.rows, "cols": found.cols, "nnz": found.nnz},
        "profile": found.profile,
        "network": found.network,
        "time_s": found.time_s,
        "block_entries": BLOCK_ENTRIES,
        "ns_per_entry": [round(float(each), 4) for each in found.ns],
        "energy_j": found.energy_j,
        "nj_per_entry": None if found.nj is None else [round(float(each), 4) for each in found.nj],
        "first_rows": found.first_rows.tolist(),
    }


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive blocks: their first and last row, and their mean nanoseconds, or nanojoules, an entry."""

    first_row: int
    last_row: int
    mean: float


def stretches(found: BlockForecast, values: NDArray[np.float64], wanted: int = _STRETCHES) -> list[Stretch]:
    """Return the blocks in so many stretches at most, each of about as many entries, with their values."""
    bounds = np.linspace(0, len(values), min(wanted, len(values)) + 1).round().astype(int)
    ends = [*found.first_rows.tolist(), found.rows - 1]
    return [
        Stretch(ends[first], ends[last], float(values[first:last].mean()))
        for first, last in itertools.pairwise(bounds)
    ]


def block_picture(found: BlockForecast) -> str:
    """Return a picture for the terminal: a character for each stretch of entries, the darker the slower."""
    lines = [
        f"{found.matrix} on {found.profile}: {found.time_s * 1e6:,.1f} us a product by {found.network}, "
        f"{found.ns.mean():.3f} ns an entry in {len(found.ns):,} blocks of {BLOCK_ENTRIES}",
        *_shaded(stretches(found, found.ns), "slowest", "ns"),
    ]
    if found.nj is not None and found.energy_j is not None:
        lines += [
            f"{1e6 * found.energy_j:,.1f} uJ a product, {found.nj.mean():.3f} nJ an entry",
            *_shaded(stretches(found, found.nj), "most energy", "nJ"),
        ]
    return "\n".join(lines)


def _shaded(parts: Sequence[Stretch], most: str, unit: str) -> list[str]:
    """Return a line of shades, what they mean, and which stretches have most."""
    values = np.array([part.mean for part in parts])
    low, high = float(values.min()), float(values.max())
    # Where all are alike, noise of the forecast is no picture: shades begin at a tenth above the least.
    span = max(high - low, 0.1 * low)
    shades = "".join(_SHADES[round((each - low) / span * (len(_SHADES) - 1))] for each in values)
    first = sorted(parts, key=lambda part: -part.mean)[:_SLOWEST]
    where = (f"rows {each.first_row:,} to {each.last_row:,}: {each.mean:.3f} {unit}" for each in first)
    return [
        f"first entry |{shades}| last entry",
        f"'{_SHADES[0]}' {low:.3f} {unit} an entry, '{_SHADES[-1]}' {low + span:.3f}",
        f"{most}: {'; '.join(where)}",
    ]


def draw_blocks(found: BlockForecast, path: Path) -> None:
    """Draw the time of each block over the entries of the matrix, and joules where they are known.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    shown = [("ns", found.ns)] + ([] if found.nj is None else [("nJ", found.nj)])
    title = f"{found.matrix} on {found.profile}: blocks of {BLOCK_ENTRIES} entries"
    with drawing(path, 9, 0.6 + 2.6 * len(shown), title) as figure:
        panels = figure.subplots(len(shown), sharex=True, squeeze=False).ravel()
        for axes, (unit, values) in zip(panels, shown, strict=True):
            _draw_values(axes, found, values)
            axes.set_ylabel(f"forecast, {unit} an entry")
        scale_axis(panels[-1].xaxis, [float(found.nnz)])
        panels[-1].set_xlim(0, max(1, found.nnz))
        panels[-1].set_xlabel("entries, in the order of the rows")
        panels[0].legend(loc="upper right", bbox_to_anchor=(1, 1.12), ncols=2, markerscale=3)


def _draw_values(axes: Axes, found: BlockForecast, values: NDArray[np.float64]) -> None:
    parts = stretches(found, values)
    entries = (np.arange(len(values)) + 0.5) * BLOCK_ENTRIES
    axes.plot(
        entries,
        values,
        linewidth=0,
        marker=".",
        markersize=2.5,
        color=COLOURS[0],
        alpha=0.5,
        label="block",
    )
    axes.stairs(
        [part.mean for part in parts],
        np.linspace(0, found.nnz, len(parts) + 1),
        baseline=None,
        color="black",
        linewidth=1.2,
        zorder=3,
        label=f"mean of each of {len(parts)} stretches",
    )
    axes.set_ylim(0, None)
