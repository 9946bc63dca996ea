"""Reports of labels, networks and forecasts of blocks: JSON documents, sentences, pictures and charts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecast.measuring.energy import MODELLED, TOTAL
from sparsecast.papers.barreda_2020.entry_blocks import BLOCK_ENTRIES
from sparsecast.papers.barreda_2020.label_files import ENERGIES, QUANTITIES, sources
from sparsecast.reports.charts.chart import COLOURS, WIDTH, Chart, Spec, axis, layer, look, panels, tooltip
from sparsecast.system.tabular import Column, Columns, keys
from sparsecast.system.texts import counted

if TYPE_CHECKING:
    from sparsecast.papers.barreda_2020.block_forecast import BlockForecast
    from sparsecast.papers.barreda_2020.label_files import BlockLabels
    from sparsecast.papers.barreda_2020.labelling import Labelling
    from sparsecast.papers.barreda_2020.network_training import TrainedNetwork


def _repeat_noise(labelled: Sequence[BlockLabels]) -> dict[str, float | None] | None:
    """Return the median relative difference of labels that were measured twice, by kind; None without."""
    if not labelled:
        return None
    noise: dict[str, float | None] = {}
    for quantity in QUANTITIES:
        pairs = [labels.of(quantity) for labels in labelled]
        differences = np.abs(np.concatenate([again / first for _, first, again in pairs]) - 1)
        noise[quantity] = float(np.median(differences)) if len(differences) else None
    return noise


def labelling_sentence(done: Labelling) -> str:
    """Return in words what a run of `label` did."""
    noise = _repeat_noise(done.labelled)
    text = f"{counted(len(done.labelled), 'matrix')} labelled, {counted(done.blocks, 'block')}; "
    text += f"{done.known:,} had labels"
    if done.left:
        text += f"; {done.left:,} remain, and the next run begins with them"
    if noise is None:
        return f"{text}."
    rate = done.blocks / done.used_s
    text += (
        f". {done.used_s:.0f} s, {done.labelling_s:.0f} s of them measuring: {rate:,.0f} blocks a second, "
        f"{3600 * rate / 1e6:.1f} million an hour. Measured twice, a block differs by "
        f"{noise['streaming']:.1%} within a product and by {noise['time']:.1%} where it is repeated in "
        f"place; {fmean(labels.slow_share for labels in done.labelled):.1%} of them never at full speed."
    )
    if MODELLED in sources(done.labelled, "frequency_source"):
        text += " Their frequencies cannot be set here: they are modelled."
    if noise[TOTAL] is None:
        return f"{text} No meter counted their joules."
    blocks = sum(len(labels.energy_blocks) for labels in done.labelled)
    meters = ", ".join(sources(done.labelled, "energy_source"))
    differ = f"counted twice they differ by {noise[TOTAL]:.1%}"
    return f"{text} Joules of {counted(blocks, 'block')} by {meters}: {differ}."


#: Stretches of blocks in a picture in the terminal, those that it names, and characters from fast to slow.
_STRETCHES, _SLOWEST, _SHADES = 64, 5, " .:-=+*#%@"

#: More dots than these make a chart slow; pixels of its height, and of a panel of the paper's figures.
_MOST_DOTS, _LOW, _PANEL = 5000, 180, {"width": 300, "height": 220}

#: Blocks of a matrix that figure 3 has at each frequency.
_DOTS = 3


class Stretch(NamedTuple):
    """Consecutive blocks: their first and last row, and their mean nanoseconds, or nanojoules, an entry."""

    first_row: int
    last_row: int
    mean: float


def stretches(forecast: BlockForecast, values: NDArray[np.float64]) -> list[Stretch]:
    """Return the blocks in stretches, each of about as many entries, with their values."""
    bounds = np.linspace(0, len(values), min(_STRETCHES, len(values)) + 1).round().astype(int)
    rows = [*forecast.first_rows.tolist(), forecast.rows - 1]
    return [
        Stretch(rows[first], rows[last], float(values[first:last].mean()))
        for first, last in itertools.pairwise(bounds)
    ]


def block_picture(forecast: BlockForecast) -> str:
    """Return a picture for the terminal: a character for each stretch of entries, the darker the slower."""
    ns, nj = forecast.ns, forecast.nj
    lines = [
        f"{forecast.matrix} on {forecast.profile}: {forecast.time_s * 1e6:,.1f} us a product by "
        f"{forecast.network}, {ns.mean():.3f} ns an entry in {len(ns):,} blocks of {BLOCK_ENTRIES}",
        *_shaded(stretches(forecast, ns), "slowest", "ns"),
    ]
    if nj is not None and forecast.energy_j is not None:
        lines += [
            f"{1e6 * forecast.energy_j:,.1f} uJ a product, {nj.mean():.3f} nJ an entry",
            *_shaded(stretches(forecast, nj), "most energy", "nJ"),
        ]
    return "\n".join(lines)


def _shaded(parts: Sequence[Stretch], most: str, unit: str) -> list[str]:
    """Return a line of shades, what they mean, and which stretches have most."""
    values = [part.mean for part in parts]
    # Where all are alike, noise of the forecast is no picture: shades begin at a tenth above the least.
    low, span = min(values), max(max(values) - min(values), 0.1 * min(values))
    shades = "".join(_SHADES[round((value - low) / span * (len(_SHADES) - 1))] for value in values)
    first = sorted(parts, key=lambda part: -part.mean)[:_SLOWEST]
    where = (f"rows {part.first_row:,} to {part.last_row:,}: {part.mean:.3f} {unit}" for part in first)
    return [
        f"first entry |{shades}| last entry",
        f"'{_SHADES[0]}' {low:.3f} {unit} an entry, '{_SHADES[-1]}' {low + span:.3f}",
        f"{most}: {'; '.join(where)}",
    ]


def block_chart(found: BlockForecast) -> Chart:
    """Return the time of each block over the entries of the matrix, and its joules where they are known."""
    charts = [_values("ns", found, found.ns)]
    if found.nj is not None:
        charts.append(_values("nJ", found, found.nj))
    return panels("blocks", "Dots: blocks; line: means of stretches.", charts, columns=1)


def _values(unit: str, found: BlockForecast, values: NDArray[np.float64]) -> Chart:
    step = -(-len(values) // _MOST_DOTS)
    dots = [
        {"entry": (place + 0.5) * BLOCK_ENTRIES, "value": float(values[place])}
        for place in range(0, len(values), step)
    ]
    parts = stretches(found, values)
    bounds = np.linspace(0, found.nnz, len(parts) + 1).tolist()
    means = [{"entry": at, "mean": part.mean} for at, part in zip(bounds, (*parts, parts[-1]), strict=True)]
    x = axis("entry", "entries, in the order of the rows")
    x["scale"] = {"domain": [0, max(1, found.nnz)], "nice": False}
    y = axis("value", f"forecast, {unit} per entry")
    line = {"type": "line", "interpolate": "step-after", "color": "black"}
    layers = [
        layer({"type": "circle", "size": 8, "color": COLOURS[0]}, {"x": x, "y": y}, dots),
        layer(line, {"x": x, "y": {**y, "field": "mean"}}, means),
    ]
    shown = "" if step == 1 else f"; {len(dots):,} of {len(values):,} blocks are drawn"
    caption = f"Blocks of {BLOCK_ENTRIES} entries, {unit} per entry{shown}"
    return Chart(unit, caption, {"layer": layers, "width": WIDTH, "height": _LOW})


def dispersion(labels: Mapping[float, Sequence[BlockLabels]]) -> Chart:
    """Return nanojoules an entry over nanoseconds, by frequency (figure 3)."""
    charts = []
    for quantity in ENERGIES:
        rows = [
            row for ghz, some in labels.items() for matrix in some for row in _dots(matrix, quantity, ghz)
        ]
        x = axis("ns", "ns an entry", [row["ns"] for row in rows], is_log=True)
        y = axis("nj", "nJ an entry", [row["nj"] for row in rows], is_log=True)
        charts.append(_points(quantity, rows, x, y))
    return panels("dispersion", "", charts, 3)


def _dots(labels: BlockLabels, quantity: str, ghz: float) -> list[dict[str, Any]]:
    (timed, ns, _), (counted, nj, _) = labels.of("time"), labels.of(quantity)
    _, first, second = np.intersect1d(timed, counted, return_indices=True)
    step = -(-len(first) // _DOTS) or 1
    pairs = zip(ns[first][::step].tolist(), nj[second][::step].tolist(), strict=True)
    return [{"matrix": labels.name, "GHz": f"{ghz:g}", "ns": time, "nj": joules} for time, joules in pairs]


def matrices_off(networks: Sequence[TrainedNetwork]) -> Chart:
    """Return the errors of matrices by frequency, sorted by those at the lowest (figure 5)."""
    charts = []
    for quantity in dict.fromkeys(network.card.quantity for network in networks):
        cards = [network.card for network in networks if network.card.quantity == quantity]
        lowest = min(cards, key=lambda card: card.frequency_ghz or 0.0).matrix_errors
        rows: list[dict[str, Any]] = [
            {"matrix": _short(matrix), "GHz": f"{card.frequency_ghz:g}", "error": 100 * error}
            for card in cards
            for matrix, error in card.matrix_errors.items()
        ]
        order = [_short(matrix) for matrix in sorted(lowest, key=lambda matrix: lowest[matrix])]
        x = {"field": "matrix", "type": "nominal", "title": None, "sort": order, "axis": {"labelAngle": -40}}
        y = axis("error", "error, %", [row["error"] for row in rows], is_log=True)
        charts.append(_points(quantity, rows, x, y))
    return panels("matrices_off", "", charts, 2)


def _short(matrix: str) -> str:
    """Return what an axis has of a specification: of a twin the name of the matrix."""
    return matrix.removeprefix("gallery:").removeprefix("atlas?name=").removesuffix("&size=whole")


def _points(caption: str, rows: Sequence[Mapping[str, Any]], x: Spec, y: Spec) -> Chart:
    looks = look("GHz", [row["GHz"] for row in rows])
    shown = tooltip({"matrix": "matrix", "GHz": "GHz"}, **{y["field"]: y["title"]})
    points = layer({"type": "point", "clip": True}, {"x": x, "y": y, **looks, "tooltip": shown}, rows)
    return Chart(caption, caption, {**points, **_PANEL})


#: The documents of the commands.
DOCUMENTS: dict[str, Columns] = {
    "label": (
        Column("matrices", value=lambda done: len(done.labelled)),
        *keys("blocks", "known", "refused", "left", "used_s", "labelling_s"),
        Column("blocks_per_s", value=lambda done: done.blocks / done.used_s if done.labelled else None),
        Column(
            "repeat_noise",
            value=lambda done: _repeat_noise(done.labelled),
            about="median relative difference of labels that were measured twice, by quantity",
        ),
        Column(
            "energy_sources",
            value=lambda done: sources(done.labelled, "energy_source"),
            about='what counted joules; "modelled" counts nothing',
        ),
        Column(
            "frequency_sources",
            value=lambda done: sources(done.labelled, "frequency_source"),
            about='"set" or "modelled"',
        ),
    ),
    "blocks": (
        Column(
            "matrix",
            value=lambda forecast: forecast,
            columns=(Column("name", value="matrix"), *keys("rows", "cols", "nnz")),
        ),
        *keys("profile", "network", "time_s"),
        Column("block_entries", value=lambda forecast: BLOCK_ENTRIES),
        Column("ns_per_entry", value=lambda forecast: forecast.ns.round(4).tolist()),
        Column("energy_j"),
        Column("nj_per_entry", value=lambda found: None if found.nj is None else found.nj.round(4).tolist()),
        Column("first_rows", value=lambda forecast: forecast.first_rows.tolist()),
    ),
}
