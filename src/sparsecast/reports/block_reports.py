"""Reports of labels and forecasts of blocks: JSON documents, sentences, and pictures."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecast.features.entry_blocks import BLOCK_ENTRIES
from sparsecast.reports.figures import COLOURS, drawing, scale_axis

if TYPE_CHECKING:
    from sparsecast.api.blocks import BlockForecast
    from sparsecast.api.labelling import Labelling


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


def _repeat_noise(done: Labelling) -> dict[str, float] | None:
    """Return the median relative difference of labels that were measured twice, by kind."""
    if not done.labelled:
        return None
    pairs = {
        "streaming": [(each.streaming_ns, each.streaming_again_ns) for each in done.labelled],
        "hot": [(each.hot_ns, each.hot_again_ns) for each in done.labelled],
    }
    return {
        kind: float(np.median(np.concatenate([np.abs(again / first - 1) for first, again in own])))
        for kind, own in pairs.items()
    }


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
        f"{noise['hot']:.1%} where it is repeated in place."
    )


#: Stretches of blocks in a picture in the terminal, and characters from fast to slow.
_STRETCHES, _SHADES = 64, " .:-=+*#%@"

#: Stretches that a document tells about: the slowest.
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
        "first_rows": found.first_rows.tolist(),
    }


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive blocks: their first and last row, and their mean nanoseconds an entry."""

    first_row: int
    last_row: int
    ns: float


def stretches(found: BlockForecast, wanted: int = _STRETCHES) -> list[Stretch]:
    """Return the blocks in so many stretches at most, each of about as many entries."""
    bounds = np.linspace(0, len(found.ns), min(wanted, len(found.ns)) + 1).round().astype(int)
    ends = [*found.first_rows.tolist(), found.rows - 1]
    return [
        Stretch(ends[first], ends[last], float(found.ns[first:last].mean()))
        for first, last in itertools.pairwise(bounds)
    ]


def block_picture(found: BlockForecast) -> str:
    """Return a picture for the terminal: a character for each stretch of entries, the darker the slower."""
    parts = stretches(found)
    times = np.array([part.ns for part in parts])
    low, high = float(times.min()), float(times.max())
    # Where all are alike, noise of the forecast is no picture: shades begin at a tenth above the fastest.
    span = max(high - low, 0.1 * low)
    shades = "".join(_SHADES[round((each - low) / span * (len(_SHADES) - 1))] for each in times)
    slowest = sorted(parts, key=lambda part: -part.ns)[:_SLOWEST]
    lines = [
        f"{found.matrix} on {found.profile}: {found.time_s * 1e6:,.1f} us a product by {found.network}, "
        f"{found.ns.mean():.3f} ns an entry in {len(found.ns):,} blocks of {BLOCK_ENTRIES}",
        f"first entry |{shades}| last entry",
        f"'{_SHADES[0]}' {low:.3f} ns an entry, '{_SHADES[-1]}' {low + span:.3f}",
        "slowest: "
        + "; ".join(f"rows {each.first_row:,} to {each.last_row:,}: {each.ns:.3f} ns" for each in slowest),
    ]
    return "\n".join(lines)


def draw_blocks(found: BlockForecast, path: Path) -> None:
    """Draw the time of each block over the entries of the matrix into a file of FILE_TYPES.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    parts = stretches(found)
    title = f"{found.matrix} on {found.profile}: blocks of {BLOCK_ENTRIES} entries"
    with drawing(path, 9, 3.2, title) as figure:
        axes = figure.subplots()
        entries = (np.arange(len(found.ns)) + 0.5) * BLOCK_ENTRIES
        axes.plot(
            entries,
            found.ns,
            linewidth=0,
            marker=".",
            markersize=2.5,
            color=COLOURS[0],
            alpha=0.5,
            label="block",
        )
        edges = np.linspace(0, found.nnz, len(parts) + 1)
        label = f"mean of each of {len(parts)} stretches"
        axes.stairs(
            [part.ns for part in parts],
            edges,
            baseline=None,
            color="black",
            linewidth=1.2,
            zorder=3,
            label=label,
        )
        scale_axis(axes.xaxis, [float(found.nnz)])
        axes.set_xlim(0, max(1, found.nnz))
        axes.set_ylim(0, None)
        axes.set_xlabel("entries, in the order of the rows")
        axes.set_ylabel("forecast, ns an entry")
        axes.legend(loc="upper right", bbox_to_anchor=(1, 1.12), ncols=2, markerscale=3)
