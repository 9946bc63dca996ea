"""Tables for people: the most important comes first, and every time has its unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from sparsecast.devices.naming import threads_text
from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.records import Bandwidth
from sparsecast.results.machines import Imported
from sparsecast.results.partitions import Partitions
from sparsecast.system.texts import energy as energy
from sparsecast.system.texts import energy_interval as energy_interval
from sparsecast.system.texts import interval as interval
from sparsecast.system.texts import percent as percent
from sparsecast.system.texts import size as size
from sparsecast.system.texts import time as time

#: Feature groups whose features a table calls by words.
_GROUPS_IN_WORDS = {
    "row_lengths",
    "locality",
    "bands",
    "blocks",
    "symmetry",
    "stored_values",
    "neighbourhood",
}


def structure(name: str, found: Structure) -> Table:
    """Return a Structure as a table of two columns."""
    table = Table(title=name, show_header=False, title_justify="left")
    fill = ", ".join(f"{b}x{b} {value:.2f}" for b, value in zip(BLOCK_SIZES, found.blocks.fill, strict=True))
    bands = " ".join(f"{100 * share:.0f}" for share in found.bands.histogram)
    for label, text in (
        ("rows x columns", f"{found.rows:,} x {found.cols:,}"),
        ("non-zeros", f"{found.nnz:,} (of them stored zeros: {found.stored_values.explicit_zeros:,})"),
        ("row length", f"mean {found.row_lengths.mean:.2f}, deviation {found.row_lengths.deviation:.2f}"),
        ("", f"mode {found.row_lengths.mode}, least {found.row_lengths.min}, most {found.row_lengths.max:,}"),
        ("empty rows", f"{found.row_lengths.empty_rows:,}"),
        ("mispredicted rows", _share(found.row_lengths.mispredicted or 0, found.rows)),
        ("half-bandwidth", f"{found.bands.half_bandwidth:,}"),
        ("diagonals occupied", f"{found.bands.diagonals:,}"),
        ("symmetric", "no" if found.symmetry.triangle_nnz is None else "yes, value by value"),
        ("share by distance, %", f"{bands}  (ten bands from the diagonal outwards)"),
        ("block fill", f"{fill}  (stored / non-zeros)"),
        ("new cache lines of x", _share(found.locality.line_changes, found.nnz)),
        *_near(found),
    ):
        table.add_row(label, text)
    for group in sorted(found.groups.keys() - _GROUPS_IN_WORDS):  # of papers and plug-ins
        for label, text in found.require(group).summary():
            table.add_row(label, text)
    return table


def _near(found: Structure) -> list[tuple[str, str]]:
    if found.lacks(["neighbourhood"]):
        return []
    near = found.neighbourhood
    return [
        ("row bandwidth", f"mean {near.row_bandwidth:,.1f}, deviation {near.row_bandwidth_deviation:,.1f}"),
        ("neighbours an entry", f"{near.neighbours:.2f} in its row"),
        ("near one of the next row", f"{100 * near.cross_row_similarity:.0f} % of a row's entries"),
    ]


def imported(found: Imported, path: Path) -> list[str]:
    """Return in sentences what became of published results."""
    profile = found.profile
    formats = dict.fromkeys(record.candidate.kernel for record in profile.records)
    return [
        f"{len(profile.records):,} results of {len(profile.matrices):,} matrices, kept as {profile.name}: "
        f"{', '.join(formats)}",
        str(path),
        *(f"- left out, {reason}: {count:,}" for reason, count in found.left_out.items()),
    ]


def made(profile: Profile, path: Path) -> list[str]:
    """Return in sentences what a machine was made from, and where its profile is."""
    machine = profile.machine
    if machine.made is None or machine.sheet is None:
        return [str(path)]
    sheet = machine.sheet
    caches = f"{size(sheet.l2_bytes)} of L2{f', {size(sheet.l3_bytes)} of L3' if sheet.l3_bytes else ''}"
    return [
        f"{machine.made.sentence(profile.name)}.",
        f"{size(sheet.bandwidth_bytes_per_s)}/s, {sheet.cores} cores at {sheet.frequency_hz / 1e9:.2f} GHz, "
        f"{caches}; {len(profile.records):,} times of {machine.made.like} were scaled.",
        str(path),
    ]


def partitions(title: str, made: Partitions, value_bytes: int) -> Table:
    """Return what partitions make of a matrix, least communication first."""
    volume = ("words", "bytes", "halo", "most received")
    table = numbers(
        title, "method", "imbalance", "edge cut", *volume, "messages", "neighbours", "to partition"
    )
    for each in made.partitions:
        found = each.distribution
        sent_and_received = found.sent_messages + found.received_messages
        exchanged = (
            ("-", "-", "-")
            if found.is_2d
            else (
                f"{found.received_words.max():,}",
                _mean_and_most(sent_and_received),
                _mean_and_most(found.received_messages),
            )
        )
        table.add_row(
            found.method,
            f"{found.imbalance:.3f}",
            "-" if found.edge_cut is None else f"{found.edge_cut:,}",
            f"{found.volume_words:,}",
            size(value_bytes * found.volume_words),
            percent(found.halo_share),
            *exchanged,
            time(each.partition_s),
        )
    lines = [
        "imbalance: most entries of a rank over their mean; words: entries of x that all ranks receive in",
        "one product of local 1D, in 2D of x and y by Bcast and Reduce; halo: the same over entries of x;",
        "messages: sent and received by a rank, neighbours: that it receives from; mean, most",
    ]
    _explain(table, "\n".join((*lines, *made.refused.values())))
    return table


def _mean_and_most(counts: NDArray[np.int64]) -> str:
    return f"{counts.mean():.1f}, {counts.max():,}"


def machines(
    here: Machine,
    contents: Mapping[str, str],
    bandwidths: Mapping[str, Iterable[Bandwidth]] | None = None,
    origins: Mapping[str, str] | None = None,
) -> Table:
    """Return this machine and, by name, what each profile at hand holds, with the bandwidths it has.

    `origins` says where profiles are from that were not measured here, and under which licence.
    """
    caches = ", ".join(f"L{cache.level} {cache.bytes >> 10:,} KiB" for cache in here.caches)
    table = Table(title=f"This machine: {here.name}", title_justify="left", caption_justify="left")
    table.caption = (
        f"{here.processor}, {here.cores} cores, {here.threads} threads, {caches or 'caches unknown'}, "
        f"{here.memory_bytes / 2**30:.0f} GiB of memory, {' '.join(here.simd) or 'no vector sets known'}"
    )
    table.add_column("profile", overflow="fold")
    table.add_column("holds")
    for name, held in contents.items():
        table.add_row(f"{name} (this machine)" if name == here.name else name, held)
        if origins and name in origins:
            table.add_row("", origins[name])
        if bandwidths and name in bandwidths:
            table.add_row("", bandwidth_sentence(bandwidths[name]))
    if here.name not in contents:
        table.add_row(f"{here.name} (this machine)", "not calibrated yet: run sparsecast calibrate")
    return table


def bandwidth_sentence(bandwidths: Iterable[Bandwidth]) -> str:
    """Return in words the bandwidth of each kind of stream, over the most bytes that it was measured with."""
    largest: dict[str, Bandwidth] = {}
    for stream in sorted(bandwidths, key=lambda stream: stream.bytes):
        words = stream.device, threads_text(stream.device, stream.threads), stream.kind
        largest[" ".join(filter(None, words))] = stream
    return ", ".join(f"{key} {size(largest[key].bandwidth_bytes_per_s)}/s" for key in sorted(largest))


def gallery(listed: Mapping[str, tuple[Mapping[str, int | None], str]]) -> Table:
    """Return the gallery's names with their parameters' defaults and what each matrix is."""
    table = Table(title="gallery:NAME?key=value&key=value", title_justify="left")
    for heading in ("name", "parameters", "matrix"):
        table.add_column(heading)
    for name, (defaults, summary) in listed.items():
        shown = [key if value is None else f"{key}={value}" for key, value in defaults.items()]
        table.add_row(name, " ".join(shown), summary)
    return table


def numbers(title: str, *headings: str) -> Table:
    """Return a table without rows, whose columns of numbers are aligned to the right."""
    table = Table(title=title, title_justify="left", caption_justify="left", min_width=len(title))
    words = (
        "method",
        "format",
        "kernel",
        "matrix",
        "model",
        "way",
        "rows",
        "device",
        "machine",
        "setting",
        "figure",
    )
    for heading in headings:
        justify: Literal["left", "right"] = "left" if heading in words else "right"
        table.add_column(heading, justify=justify, no_wrap=heading != "matrix")
    return table


def _explain(table: Table, text: str) -> None:
    """Put lines below a table, which is made wide enough for them."""
    table.caption = text
    table.min_width = max(len(line) for line in (str(table.title), *text.splitlines()))


def _share(count: int, total: int) -> str:
    return f"{count:,} ({100 * count / total:.0f} %)" if total else f"{count:,}"


def add_refused(table: Table, refused: Mapping[str, str]) -> None:
    """Put below a table what was refused, and why."""
    if refused:
        table.caption = "\n".join(refused.values())
