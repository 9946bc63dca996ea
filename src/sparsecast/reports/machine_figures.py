"""The figure of a machine: its bandwidths over the size of the data, and its Records under the roofline."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sparsecast.devices.naming import threads_text
from sparsecast.errors import InputError
from sparsecast.machines.profile import Profile
from sparsecast.records import Record, product_flops
from sparsecast.reports.figures import drawing, format_looks, looks, scale_axis
from sparsecast.reports.tables import size

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class BandwidthLine:
    """Measured speeds of one kind of stream over the bytes that it moves, the fewest first.

    Attributes
    ----------
    noise : tuple of float or None
        Relative.
    """

    label: str
    bytes: tuple[int, ...]
    bytes_per_s: tuple[float, ...]
    noise: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class MachinePicture:
    """What the figure of a machine shows.

    Attributes
    ----------
    lines : tuple of BandwidthLine
    caches : tuple of (str, int)
        Name and bytes of each cache.
    setting : str
        Type and threads of the points.
    points : dict of str to (tuple of float, tuple of float)
        For each format, flops a byte that its products move, and flops a second.
    roofs : tuple of (str, float)
        Name and bytes a second of what bounds a product: the highest bandwidth of reads, and that of the
        most data.
    """

    lines: tuple[BandwidthLine, ...]
    caches: tuple[tuple[str, int], ...]
    setting: str
    points: dict[str, tuple[tuple[float, ...], tuple[float, ...]]]
    roofs: tuple[tuple[str, float], ...]


def machine_picture(profile: Profile) -> MachinePicture:
    """Return what is drawn of a profile; points are of the type and threads that most of its Records have."""
    streams = defaultdict(list)
    for each in profile.bandwidths:
        words = each.device, threads_text(each.device, each.threads), each.kind
        streams[" ".join(filter(None, words))].append(each)
    lines = []
    for label, own in sorted(streams.items()):
        own.sort(key=lambda each: each.bytes)
        lines.append(
            BandwidthLine(
                label,
                tuple(each.bytes for each in own),
                tuple(each.bandwidth_bytes_per_s for each in own),
                tuple(each.noise for each in own),
            )
        )
    caches = tuple((f"L{cache.level}", cache.bytes) for cache in profile.machine.caches)
    warm = [record for record in profile.records if record.regime == "warm" and record.traffic_bytes]
    counts = Counter((r.candidate.dtype, r.candidate.threads, r.candidate.device) for r in warm)
    if not counts:
        return MachinePicture(tuple(lines), caches, "", {}, ())
    dtype, threads, device = max(counts, key=lambda key: (counts[key], key))
    shown = [
        record
        for record in warm
        if (record.candidate.dtype, record.candidate.threads, record.candidate.device)
        == (dtype, threads, device)
    ]
    reads = [
        each
        for each in profile.bandwidths
        if (each.kind, each.device, each.threads) == ("read", device, threads)
    ]
    reads.sort(key=lambda each: each.bytes)
    bounds = [max(reads, key=lambda each: each.bandwidth_bytes_per_s), reads[-1]] if reads else []
    roofs = tuple(
        (f"read of {size(each.bytes)}", each.bandwidth_bytes_per_s) for each in dict.fromkeys(bounds)
    )
    setting = ", ".join(filter(None, (dtype, threads_text(device, threads))))
    return MachinePicture(tuple(lines), caches, setting, _points(shown), roofs)


def _points(records: list[Record]) -> dict[str, tuple[tuple[float, ...], tuple[float, ...]]]:
    found = {}
    for name in sorted({record.candidate.format for record in records}):
        own = [record for record in records if record.candidate.format == name and record.nnz]
        flops = [product_flops(record.nnz, record.candidate.dtype) for record in own]
        found[name] = (
            tuple(each / record.traffic_bytes for each, record in zip(flops, own, strict=True)),
            tuple(each / record.time_s for each, record in zip(flops, own, strict=True)),
        )
    return {name: both for name, both in found.items() if both[0]}


def draw_machine(shown: MachinePicture, title: str, path: Path) -> None:
    """Draw bandwidths with the caches, and measured products with their roofs, into a file of FILE_TYPES.

    Raises
    ------
    InputError
        If there is neither, or the file cannot be written.
    """
    panels = [draw for draw, own in ((_draw_bandwidths, shown.lines), (_draw_roofline, shown.points)) if own]
    if not panels:
        raise InputError(
            f"figure {path} would show nothing: expected a profile with bandwidths or Records; name another"
        )
    with drawing(path, 5.2 * len(panels) + 0.6, 4.6, title) as figure:
        for ax, draw in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            draw(ax, shown)


def _draw_bandwidths(ax: Axes, shown: MachinePicture) -> None:
    own = looks(line.label for line in shown.lines)
    for line in shown.lines:
        look = own[line.label]
        noise = [
            np.nan if each is None else each * speed
            for each, speed in zip(line.noise, line.bytes_per_s, strict=True)
        ]
        ax.errorbar(
            line.bytes,
            line.bytes_per_s,
            yerr=noise,
            color=look.colour,
            marker=look.mark,
            capsize=3,
            label=line.label,
        )
    scale_axis(ax.xaxis, [count for line in shown.lines for count in line.bytes], "B")
    scale_axis(ax.yaxis, [speed for line in shown.lines for speed in line.bytes_per_s], "B/s")
    for name, count in shown.caches:
        ax.axvline(count, color="#777777", linewidth=0.8, linestyle=":")
        ax.annotate(
            name,
            (count, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(2, -9),
            textcoords="offset points",
            fontsize=8,
        )
    ax.set_xlabel("bytes that one call moves; dotted: caches")
    ax.set_ylabel("bandwidth")
    ax.set_title("bandwidths, with their noise")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)


def _draw_roofline(ax: Axes, shown: MachinePicture) -> None:
    own = format_looks(shown.points)
    intensities = [each for both in shown.points.values() for each in both[0]]
    speeds = [each for both in shown.points.values() for each in both[1]]
    for name, (flops_per_byte, flops_per_s) in shown.points.items():
        look = own[name]
        ax.scatter(
            flops_per_byte,
            flops_per_s,
            s=16,
            alpha=0.6,
            color=look.colour,
            marker=look.mark,
            label=name.upper(),
            linewidth=0,
        )
    ends = np.array([min(intensities) / 1.2, max(intensities) * 1.2])
    for (name, bandwidth), dashes in zip(shown.roofs, ("-", "--"), strict=False):
        ax.plot(ends, bandwidth * ends, color="black", linewidth=1, linestyle=dashes, label=name)
        speeds += (bandwidth * ends).tolist()
    scale_axis(ax.xaxis, intensities)
    ax.xaxis.set_major_formatter("{x:g}")
    scale_axis(ax.yaxis, speeds, "FLOP/s")
    ax.set_xlabel("FLOP a byte that the product moves")
    ax.set_ylabel("measured speed")
    ax.set_title(f"products, {shown.setting}")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=4, markerscale=1.3)
