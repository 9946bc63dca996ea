"""Tables for people: the most important comes first, and every time has its unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from sparsecast.devices import DEVICES
from sparsecast.devices.naming import threads_text
from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.records import Bandwidth, Candidate, Forecast, Record
from sparsecast.results.evaluation import ErrorScore, ModelScore, Repeats
from sparsecast.results.machines import Imported
from sparsecast.results.partitions import Partitions
from sparsecast.results.plan import Placements, Plan, PlanCheck
from sparsecast.results.prediction import Prediction

#: Blocks of a plan that a table shows before it says how many follow.
_BLOCKS_SHOWN = 12

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

#: The columns of a way of doing the product.
_WAY = ("format", "kernel")

#: From here on three digits show 1 of a unit, and below it at most 999 of the next smaller one.
_ROUNDS_TO_ONE = 0.9995

_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_ENERGIES = {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6}
_SIZES = {"GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0}


def time(seconds: float | None) -> str:
    """Return a time with three digits in the unit that suits it."""
    return "-" if seconds is None else _in_units(seconds, _TIMES)


def energy(joules: float | None) -> str:
    """Return an energy with three digits in the unit that suits it."""
    return "not measured" if joules is None else _in_units(joules, _ENERGIES)


def energy_interval(joules: float | None, low_j: float | None, high_j: float | None) -> str:
    """Return an energy with its interval, where that is known."""
    known = low_j is not None and high_j is not None
    return f"{energy(joules)} ({energy(low_j)} - {energy(high_j)})" if known else energy(joules)


def size(count: float) -> str:
    """Return a number of bytes with three digits in the unit that suits it."""
    return _in_units(count, _SIZES)


def _in_units(value: float, units: Mapping[str, float]) -> str:
    *larger, smallest = units
    unit = next((name for name in larger if abs(value) >= _ROUNDS_TO_ONE * units[name]), smallest)
    shown = value / units[unit]
    return f"{shown:.3g} {unit}" if shown < 999.5 else f"{shown:,.0f} {unit}"


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


def forecasts(title: str, items: Sequence[Forecast], refused: Mapping[str, str]) -> Table:
    """Return Forecasts, fastest first, and below them the formats that do not suit."""
    energies = ["energy"] if any(item.energy_j is not None for item in items) else []
    bases = ["basis"] if any(item.basis != "model" for item in items) else []
    table = numbers(title, *_WAY, "time", *bases, "interval", "GFLOP/s", "bytes", "to convert", *energies)
    for item in items:
        table.add_row(
            *_way(item.candidate),
            time(item.time_s),
            *(item.basis for _ in bases),
            interval(item.low_s, item.high_s),
            f"{item.gflops:.2f}",
            size(item.bytes),
            _or_none(item.convert_s),
            *(energy(item.energy_j) for _ in energies),
        )
    add_refused(table, refused)
    return table


def table_of_forecasts(title: str, found: Mapping[str, Prediction], refused: Mapping[str, str]) -> Table:
    """Return the Forecasts of several matrices, each fastest first, and below them what has none."""
    table = numbers(title, "matrix", *_WAY, "time", "interval")
    for name, prediction in found.items():
        for item in prediction:
            ends = interval(item.low_s, item.high_s)
            table.add_row(name, *_way(item.candidate), time(item.time_s), ends)
    add_refused(table, refused)
    return table


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


def measurements(
    title: str, records: Sequence[Record], expected: Mapping[Candidate, Forecast], refused: Mapping[str, str]
) -> Table:
    """Return measurements, fastest first, each with its forecast if it has one."""
    energies = ["energy"] if any(record.energy_j is not None for record in records) else []
    # Told where it tells measurements apart.
    frequencies = ["frequency"] if len({record.candidate for record in records}) < len(records) else []
    against = ("forecast", "interval", "error")
    last = "converted", *energies, *frequencies
    table = numbers(title, *_WAY, "measured", "noise", "GFLOP/s", *against, *last)
    for record in records:
        forecast = expected.get(record.candidate)
        table.add_row(
            *_way(record.candidate),
            time(record.time_s),
            percent(record.noise),
            f"{record.gflops:.2f}",
            time(forecast.time_s) if forecast else "-",
            interval(forecast.low_s, forecast.high_s) if forecast else "-",
            f"{100 * (forecast.time_s / record.time_s - 1):+.0f} %" if forecast else "-",
            "nothing" if record.convert_s == 0 else time(record.convert_s),
            *(energy(record.energy_j) for _ in energies),
            *(_frequency(record) for _ in frequencies),
        )
    add_refused(table, refused)
    return table


def _frequency(record: Record) -> str:
    hz = record.conditions.frequency_hz if record.conditions else None
    return "-" if hz is None else f"{hz / 1e9:.2f} GHz"


def plan(title: str, made: Plan) -> Table:
    """Return the row blocks of a plan."""
    table = numbers(title, "rows", *_WAY, "time", "to convert")
    for block in made.blocks[:_BLOCKS_SHOWN]:
        rows = f"{block.first_row:,} to {block.last_row:,}"
        table.add_row(rows, *_way(block.candidate), time(block.time_s), _or_none(block.convert_s))
    if len(made.blocks) > _BLOCKS_SHOWN:
        table.add_row(f"and {len(made.blocks) - _BLOCKS_SHOWN} more blocks")
    return table


def plan_sentences(made: Plan, profile: str) -> list[str]:
    """Return what a plan comes to, in sentences."""
    sentences = [
        f"One product on {profile}: {time(made.time_s)} {_bracketed(made.low_s, made.high_s)}, "
        f"plain CSR {time(made.baseline.time_s)}."
    ]
    if made.energy_j is not None:
        what = "" if made.objective == "time" else f", the least {made.objective}"
        sentences.append(f"Energy of one product: {energy(made.energy_j)}{what}.")
    if made.as_printed:
        sentences.append(
            "This is the plan of Guo et al. (2014): the fastest product, with no conversion counted."
        )
    if not DEVICES.get(made.device).shares_host:
        sentences.append(_device_sentence(made))
    elif made.convert_s == 0:
        sentences.append(f"Nothing to convert: for {made.iterations:,} products plain CSR arrays are best.")
    elif made.break_even_iterations is None:
        sentences.append(f"Converting takes {time(made.convert_s)} and does not pay.")
    else:
        paid = _from_on(made.break_even_iterations, made.iterations)
        sentences.append(f"Converting takes {time(made.convert_s)}, paid {paid}")
    return sentences


def _device_sentence(made: Plan) -> str:
    """Return what a plan on a device needs before its first product."""
    building = f"Building it and copying it to the device takes {time(made.convert_s)}"
    if not made.break_even_iterations:
        return f"{building}."
    paid = _from_on(made.break_even_iterations, made.iterations)
    return f"{building}, {time(made.baseline.convert_s)} as plain CSR: paid {paid}"


def _from_on(iterations: int, asked_for: int) -> str:
    return f"from {iterations:,} products on; {asked_for:,} are asked for."


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


def placements(title: str, found: Placements) -> Table:
    """Return the devices that were compared, the best first."""
    costs = ("one product", "convert", "x and y once", "all products", "x and y travelling")
    table = numbers(title, "device", "machine", *costs)
    for placement in found.placements:
        table.add_row(
            placement.plan.device,
            placement.profile,
            time(placement.plan.time_s),
            _or_none(placement.plan.convert_s),
            _or_none(placement.transfer_s),
            time(placement.total_s),
            time(placement.travelling_s),
        )
    explained = "x and y travelling: all products, if x and y are copied for every one"
    table.caption = "\n".join((explained, *found.refused.values()))
    return table


def placement_sentences(found: Placements) -> list[str]:
    """Return what a comparison of devices comes to, in sentences."""
    best, fastest = found.best, found.fastest
    sentences = [
        f"Best on {best.plan.device} ({best.profile}): {time(best.total_s)} in all, if the vectors stay."
    ]
    if found.break_even_iterations is not None:
        pays = _from_on(found.break_even_iterations, best.plan.iterations)
        pays = "from the first one on." if found.break_even_iterations == 1 else pays
        sentences.append(f"{fastest.plan.device} has the fastest product and pays {pays}")
    travelling = min(found.placements, key=lambda placement: placement.travelling_s)
    if travelling is not best:
        total = f"{travelling.plan.device} is best: {time(travelling.travelling_s)} in all."
        sentences.append(f"If x and y travel for every product, {total}")
    return sentences


def plan_check(made: Plan, check: PlanCheck) -> Table:
    """Compare the measured plan with its forecast, with plain CSR and with SciPy."""
    table = numbers("Measured in turn", "way", "one product", "forecast", "against the plan")
    for way, measured, forecast in (
        ("the plan", check.time_s, made.time_s),
        ("plain CSR", check.baseline_s, made.baseline.time_s),
        ("SciPy, one thread", check.scipy_s, None),
    ):
        table.add_row(way, time(measured), time(forecast), f"{measured / check.time_s:.2f} x")
    table.caption = (
        f"noise {percent(check.noise)}, converted in {time(check.convert_s)}, "
        f"largest relative error against the reference result {check.error:.1e}"
    )
    return table


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


def errors(models: Mapping[str, ModelScore]) -> Table:
    """Return the errors of each model, the best first, and below it those of each format."""
    headings = ("number", "median", "mean", "90 %", "held", "width", "noise", "again", "90 %")
    table = numbers("Error of the forecasts in percent, best model first", "model", *headings)
    for name, score in models.items():
        table.add_row(_with_quantity(name, score), *_error_cells(score), style="bold")
        for format_name, own in sorted(score.formats.items(), key=lambda item: item[1].median_error):
            table.add_row(f"  {format_name.upper()}", *_error_cells(own))
    _explain(
        table,
        "best: by the median over all that was measured; what has no forecast counts as wrong\n"
        "held: measurements within the interval; width: of the interval, over the forecast\n"
        "noise: median of the measurements; again: they differed by, measured once more later",
    )
    return table


def _error_cells(score: ErrorScore) -> tuple[str, ...]:
    shares = (score.median_error, score.mean_error, score.p90_error, score.coverage, score.mean_width)
    noises = (score.median_noise, score.repeat_median, score.repeat_p90)
    return f"{score.forecasts:,}", *map(percent_number, (*shares, *noises))


def choices(models: Mapping[str, ModelScore]) -> Table:
    """Return what each model's choice of a format loses, and what its forecasts cost."""
    headings = ("regret", "worst", "best found", "not forecast", "cost", "large", "very large")
    table = numbers("Choice of the format, and cost of the forecasts", "model", *headings)
    for name, score in models.items():
        costs = score.forecast_products, score.forecast_products_large, score.forecast_products_very_large
        table.add_row(
            _with_quantity(name, score),
            f"{100 * score.regret:.1f} %",
            f"{score.worst_ratio:.2f}",
            f"{100 * score.top1:.0f} %",
            f"{score.unforecast:,}",
            *("-" if cost is None else f"{cost:.3g}" for cost in costs),
        )
    _explain(
        table,
        "worst: time of the chosen format over that of the best\n"
        "cost: of all forecasts for a matrix, in products of CSR; the median,\n"
        "and the largest from a million and from ten million entries on",
    )
    return table


def _with_quantity(name: str, score: ModelScore) -> str:
    return name if score.quantity == "time" else f"{name} ({score.quantity})"


def worst_sentence(models: Mapping[str, ModelScore]) -> str:
    """Return in a sentence which matrices the best model forecasts worst."""
    best = next(iter(models), None)
    if best is None:
        return "No forecast was compared with a measurement."
    named = ", ".join(f"{matrix} {100 * error:+.0f} %" for matrix, error in models[best].worst)
    return f"Worst matrices of {best}, by the median error of their formats: {named}."


def repeats_sentence(found: Repeats | None) -> str:
    """Return in a sentence what measurements differ by that were taken again."""
    if found is None:
        return "Nothing was measured again: how far repeated measurements differ is not known."
    return (
        f"Measured again after {found.after_s:,.0f} s (median), {found.candidates:,} formats of "
        f"{found.matrices:,} matrices differed by {100 * found.median:.1f} % at the median and "
        f"{100 * found.p90:.1f} % at the 90th percentile."
    )


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


def percent(share: float | None) -> str:
    """Return a share in percent; a dash where there is none."""
    return "-" if share is None else f"{100 * share:.1f} %"


def _explain(table: Table, text: str) -> None:
    """Put lines below a table, which is made wide enough for them."""
    table.caption = text
    table.min_width = max(len(line) for line in (str(table.title), *text.splitlines()))


def percent_number(share: float | None) -> str:
    """Return the percent of a share in at most five characters, so that eight fit beside each other."""
    if share is None or share >= 9.995:
        return "-" if share is None else "> 999"
    return f"{100 * share:.0f}" if share >= 0.9995 else f"{100 * share:.1f}"


def _way(candidate: Candidate) -> tuple[str, str]:
    return candidate.format.upper(), candidate.kernel


def _or_none(seconds: float | None) -> str:
    return "none" if seconds == 0 else time(seconds)


def interval(low_s: float | None, high_s: float | None) -> str:
    """Return an interval of times; one without an end is unknown."""
    return "unknown" if low_s is None or high_s is None else f"{time(low_s)} - {time(high_s)}"


def _bracketed(low_s: float | None, high_s: float | None) -> str:
    return f"({interval(low_s, high_s)})" if low_s is not None else "(interval unknown)"


def _share(count: int, total: int) -> str:
    return f"{count:,} ({100 * count / total:.0f} %)" if total else f"{count:,}"


def add_refused(table: Table, refused: Mapping[str, str]) -> None:
    """Put below a table what was refused, and why."""
    if refused:
        table.caption = "\n".join(refused.values())
