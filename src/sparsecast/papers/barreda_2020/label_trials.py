"""What the labels of blocks depend on: made-up blocks that differ in one thing, repeated in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.devices.product_timer import right_hand_side
from sparsecast.machines.machine import PROCESSOR
from sparsecast.papers.barreda_2020.block_times import HotBlocks, LabelEffort
from sparsecast.papers.barreda_2020.entry_blocks import BLOCK_ENTRIES
from sparsecast.reports.charts.chart import WIDTH, Chart, axis, dot, layer, look, tooltip
from sparsecast.system.tabular import Column
from sparsecast.system.texts import percent

_BLOCKS, _COLUMNS = 32, 1 << 20

_EFFORT = LabelEffort(hot_trials=3)

_BESIDE = np.arange(BLOCK_ENTRIES)

Draw = Callable[[np.random.Generator], NDArray[np.int64]]

#: Blocks by what is changed: lengths of rows, the last of which is cut, and columns.
_MADE: dict[str, tuple[int | Draw, Draw]] = {
    "one row of 250 entries, columns side by side": (BLOCK_ENTRIES, lambda draw: _BESIDE),
    "rows of 10": (10, lambda draw: _BESIDE),
    "rows of 3": (3, lambda draw: _BESIDE),
    "rows of 1": (1, lambda draw: _BESIDE),
    "rows of 3 in the mean, at random": (
        lambda draw: draw.geometric(1 / 3, BLOCK_ENTRIES),
        lambda draw: _BESIDE,
    ),
    "one row, columns at random in 64 lines": (
        BLOCK_ENTRIES,
        lambda draw: draw.integers(0, 512, BLOCK_ENTRIES),
    ),
    "one row, at random in 2,048 pages": (
        BLOCK_ENTRIES,
        lambda draw: draw.integers(0, _COLUMNS, BLOCK_ENTRIES),
    ),
    "one row, 4,096 bytes apart": (BLOCK_ENTRIES, lambda draw: 512 * _BESIDE),
}

TRIAL: tuple[Column, ...] = (
    Column("what", "block"),
    Column("ns", "the paper's loop, ns an entry", text="{:.3f}".format),
    Column("deviation", "deviation", text=percent),
    Column("branchless_ns", "without branches", text="{:.3f}".format),
    Column("branchless_deviation", "deviation ", text=percent),
)


def label_trials() -> Iterator[dict[str, Any]]:
    """Give the nanoseconds an entry of each kind of block by both loops, and deviations over the mean."""
    x, speed = right_hand_side(_COLUMNS, "float64"), DEVICES.get(PROCESSOR).core_speed(1)
    for what, (lengths, columns) in _MADE.items():
        draw, ends, indices = np.random.default_rng(0), [0], []
        for block in range(_BLOCKS):
            drawn = np.full(BLOCK_ENTRIES, lengths) if isinstance(lengths, int) else lengths(draw)
            inside = np.minimum(np.cumsum(drawn), BLOCK_ENTRIES)
            ends += (block * BLOCK_ENTRIES + np.unique(inside)).tolist()
            indices.append(columns(draw))
        data = draw.uniform(-1, 1, _BLOCKS * BLOCK_ENTRIES)
        arrays = data, np.concatenate(indices).astype(np.int32), np.array(ends, dtype=np.int32)
        A = csr_array(arrays, shape=(len(ends) - 1, _COLUMNS))
        row: dict[str, Any] = {"what": what}
        for prefix, has_branches in (("", True), ("branchless_", False)):
            blocks = HotBlocks(A, np.arange(_BLOCKS), x, _EFFORT, speed, has_branches=has_branches)
            ns = blocks.measure()
            row |= {f"{prefix}ns": float(ns.mean()), f"{prefix}deviation": float(ns.std() / ns.mean())}
        yield row


def trial_chart(rows: Sequence[dict[str, Any]]) -> Chart:
    """Return the times of both loops by what is changed."""
    loops = {"the paper's loop": "ns", "without branches": "branchless_ns"}
    dots = [{"block": r["what"], "loop": loop, "ns": r[key]} for r in rows for loop, key in loops.items()]
    y = {"field": "block", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 320}}
    x = axis("ns", "ns an entry", [each["ns"] for each in dots])
    shown = tooltip({"block": "block", "loop": "loop"}, ns="ns an entry")
    marks = layer(dot(), {"x": x, "y": y, **look("loop", loops), "tooltip": shown}, dots)
    return Chart(
        "label_trials", "Blocks that differ in one thing, repeated in place", {**marks, "width": WIDTH}
    )
