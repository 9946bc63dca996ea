"""Tables for people: the most important comes first, and every time has its unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table

from sparsecast.benchmark.evaluation import EvaluationRow, ModelScore
from sparsecast.benchmark.gahvari.comparison import Comparison
from sparsecast.benchmark.gahvari.summary import FIGURES, BenchResult, Rating
from sparsecast.benchmark.plan_check import PlanCheck
from sparsecast.benchmark.twin_comparison import Twins
from sparsecast.devices import DEVICES
from sparsecast.features.levels import BLOCK_SIZES
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.planning.placement import Placements
from sparsecast.planning.plan import Plan
from sparsecast.records import Bandwidth, Candidate, Forecast, Record

#: Blocks of a plan that a table shows before it says how many follow.
_BLOCKS_SHOWN = 12

#: Feature groups whose features a table calls by words.
_GROUPS_IN_WORDS = {"row_lengths", "locality", "bands", "blocks", "symmetry", "stored_values"}

#: From here on three digits show 1 of a unit, and below it at most 999 of the next smaller one.
_ROUNDS_TO_ONE = 0.9995


def time(seconds: float | None) -> str:
    """Return a time with three digits in the unit that suits it."""
    if seconds is None:
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if abs(seconds) * factor >= _ROUNDS_TO_ONE:
            return f"{seconds * factor:.3g} {unit}" if seconds * factor < 999.5 else f"{seconds:,.0f} s"
    return f"{seconds * 1e9:.3g} ns"


def energy(joules: float | None) -> str:
    """Return an energy with three digits in the unit that suits it."""
    if joules is None:
        return "not measured"
    for unit, factor in (("J", 1.0), ("mJ", 1e3)):
        if joules * factor >= _ROUNDS_TO_ONE:
            return f"{joules * factor:.3g} {unit}"
    return f"{joules * 1e6:.3g} uJ"


def size(count: float) -> str:
    """Return a number of bytes with three digits in the unit that suits it."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= _ROUNDS_TO_ONE * factor:
            return (
                f"{count / factor:.3g} {unit}" if count < 999.5 * factor else f"{count / factor:,.0f} {unit}"
            )
    return f"{count:.0f} B"


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
    ):
        table.add_row(label, text)
    for name in sorted(found.groups.keys() - _GROUPS_IN_WORDS):  # of plug-ins
        features = found.require(name).to_dict().items()
        table.add_row(name, ", ".join(f"{key} {value}" for key, value in features if key != "version"))
    return table


def forecasts(title: str, items: Sequence[Forecast], refused: Mapping[str, str]) -> Table:
    """Return Forecasts, fastest first, and below them the formats that do not suit."""
    table = _numbers(title, "format", "kernel", "time", "interval", "GFLOP/s", "bytes", "to convert")
    has_energy = any(item.energy_j is not None for item in items)
    if has_energy:
        table.add_column("energy", justify="right", no_wrap=True)
    for item in items:
        table.add_row(
            *_way(item.candidate),
            time(item.time_s),
            _interval(item.low_s, item.high_s),
            f"{item.gflops:.2f}",
            size(item.bytes),
            "none" if item.convert_s == 0 else time(item.convert_s),
            *([energy(item.energy_j)] if has_energy else []),
        )
    _add_refused(table, refused)
    return table


def measurements(
    title: str, records: Sequence[Record], expected: Mapping[Candidate, Forecast], refused: Mapping[str, str]
) -> Table:
    """Return measurements, fastest first, each with its forecast if it has one."""
    table = _numbers(
        title,
        "format",
        "kernel",
        "measured",
        "noise",
        "GFLOP/s",
        "forecast",
        "interval",
        "error",
        "converted",
    )
    has_energy = any(record.energy_j is not None for record in records)
    if has_energy:
        table.add_column("energy", justify="right", no_wrap=True)
    for record in records:
        forecast = expected.get(record.candidate)
        table.add_row(
            *_way(record.candidate),
            time(record.time_s),
            _percent(record.noise),
            f"{record.gflops:.2f}",
            time(forecast.time_s) if forecast else "-",
            _interval(forecast.low_s, forecast.high_s) if forecast else "-",
            f"{100 * (forecast.time_s / record.time_s - 1):+.0f} %" if forecast else "-",
            "nothing" if record.convert_s == 0 else time(record.convert_s),
            *([energy(record.energy_j)] if has_energy else []),
        )
    _add_refused(table, refused)
    return table


def plan(title: str, made: Plan) -> Table:
    """Return the row blocks of a plan."""
    table = _numbers(title, "rows", "format", "kernel", "time", "to convert")
    for block in made.blocks[:_BLOCKS_SHOWN]:
        table.add_row(
            f"{block.first_row:,} to {block.last_row:,}",
            *_way(block.candidate),
            time(block.time_s),
            time(block.convert_s) if block.convert_s else "none",
        )
    if len(made.blocks) > _BLOCKS_SHOWN:
        table.add_row(f"and {len(made.blocks) - _BLOCKS_SHOWN} more blocks", "", "", "", "")
    return table


def plan_sentences(made: Plan, profile: str) -> list[str]:
    """Return what a plan comes to, in sentences."""
    sentences = [
        f"One product on {profile}: {time(made.time_s)} {_bracketed(made.low_s, made.high_s)}, "
        f"plain CSR {time(made.baseline.time_s)}."
    ]
    if not DEVICES.get(made.device).shares_host:
        sentences.append(_device_sentence(made))
    elif made.convert_s == 0:
        sentences.append(f"Nothing to convert: for {made.iterations:,} products plain CSR arrays are best.")
    elif made.break_even_iterations is None:
        sentences.append(f"Converting takes {time(made.convert_s)} and does not pay.")
    else:
        sentences.append(
            f"Converting takes {time(made.convert_s)}, paid from {made.break_even_iterations:,} products on; "
            f"{made.iterations:,} are asked for."
        )
    return sentences


def _device_sentence(made: Plan) -> str:
    """Return what a plan on a device needs before its first product."""
    building = f"Building it and copying it to the device takes {time(made.convert_s)}"
    if not made.break_even_iterations:
        return f"{building}."
    return (
        f"{building}, {time(made.baseline.convert_s)} as plain CSR: paid from {made.break_even_iterations:,} "
        f"products on; {made.iterations:,} are asked for."
    )


def placements(title: str, found: Placements) -> Table:
    """Return the devices that were compared, the best first."""
    table = _numbers(
        title,
        "device",
        "machine",
        "one product",
        "convert",
        "x and y once",
        "all products",
        "x and y travelling",
    )
    for placement in found.placements:
        table.add_row(
            placement.plan.device,
            placement.profile,
            time(placement.plan.time_s),
            time(placement.plan.convert_s) if placement.plan.convert_s else "none",
            time(placement.transfer_s) if placement.transfer_s else "none",
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
    if found.break_even_iterations == 1:
        sentences.append(f"{fastest.plan.device} has the fastest product and pays from the first one on.")
    elif found.break_even_iterations is not None:
        sentences.append(
            f"{fastest.plan.device} has the fastest product and pays from "
            f"{found.break_even_iterations:,} products on; {best.plan.iterations:,} are asked for."
        )
    travelling = min(found.placements, key=lambda placement: placement.travelling_s)
    if travelling is not best:
        sentences.append(
            f"If x and y travel for every product, {travelling.plan.device} is best: "
            f"{time(travelling.travelling_s)} in all."
        )
    return sentences


def plan_check(made: Plan, check: PlanCheck) -> Table:
    """Compare the measured plan with its forecast, with plain CSR and with SciPy."""
    table = _numbers("Measured in turn", "way", "one product", "forecast", "against the plan")
    for way, measured, forecast in (
        ("the plan", check.time_s, made.time_s),
        ("plain CSR", check.baseline_s, made.baseline.time_s),
        ("SciPy, one thread", check.scipy_s, None),
    ):
        table.add_row(way, time(measured), time(forecast), f"{measured / check.time_s:.2f} x")
    table.caption = (
        f"noise {_percent(check.noise)}, converted in {time(check.convert_s)}, "
        f"largest relative error against the oracle {check.error:.1e}"
    )
    return table


def machines(
    here: Machine, contents: Mapping[str, str], bandwidths: Mapping[str, Iterable[Bandwidth]] | None = None
) -> Table:
    """Return this machine and, by name, what each profile at hand holds, with the bandwidths it has."""
    caches = (
        ", ".join(f"L{cache.level} {cache.bytes >> 10:,} KiB" for cache in here.caches) or "caches unknown"
    )
    table = Table(title=f"This machine: {here.name}", title_justify="left", caption_justify="left")
    table.caption = (
        f"{here.processor}, {here.cores} cores, {here.threads} threads, {caches}, "
        f"{here.memory_bytes / 2**30:.0f} GiB of memory, {' '.join(here.simd) or 'no vector sets known'}"
    )
    table.add_column("profile", overflow="fold")
    table.add_column("holds")
    for name, held in contents.items():
        table.add_row(f"{name} (this machine)" if name == here.name else name, held)
        if bandwidths and name in bandwidths:
            table.add_row("", bandwidth_sentence(bandwidths[name]))
    if here.name not in contents:
        table.add_row(f"{here.name} (this machine)", "not calibrated yet: run sparsecast calibrate")
    return table


def bandwidth_sentence(bandwidths: Iterable[Bandwidth]) -> str:
    """Return in words the bandwidth of each kind of stream, over the most bytes that it was measured with."""
    largest: dict[str, Bandwidth] = {}
    for stream in sorted(bandwidths, key=lambda stream: stream.bytes):
        threads = DEVICES.get(stream.device).threads_text(stream.threads)
        largest[" ".join(filter(None, (stream.device, threads, stream.kind)))] = stream
    return ", ".join(f"{key} {size(largest[key].bandwidth_bytes_per_s)}/s" for key in sorted(largest))


def bench(found: BenchResult) -> Table:
    """Return the figures of every target, each with its error, and below them the phases."""
    targets = [f"{rating.dtype}, {_threads(rating)}" for rating in found.ratings]
    table = _numbers(f"MFLOP/s of {found.machine.name}", "figure", *targets)
    for name in FIGURES:
        label = name.removesuffix("_mflops").replace("_", " ")
        table.add_row(label, *(_with_error(getattr(r.figures, name), r.errors[name]) for r in found.ratings))
    for label, shown in (
        ("noise", [_percent(rating.noise) for rating in found.ratings]),
        ("share of the bandwidth", [_percent(rating.bandwidth_share) for rating in found.ratings]),
        ("largest dimension", [f"{rating.largest_dimension:,}" for rating in found.ratings]),
        ("small, medium, large", [_sizes(rating) for rating in found.ratings]),
        ("refilled", [f"{rating.refilled:,}" for rating in found.ratings]),
    ):
        table.add_row(label, *shown)
    phases = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in found.phases.items())
    table.caption = f"{found.used_s:.0f} of {found.budget_s:g} s used: {phases}"
    return table


def bench_sentence(found: BenchResult) -> str:
    """Return the one number of the benchmark in a sentence."""
    if not found.ratings or found.ratings[0].figures.blocked_median_mflops is None:
        return "No blocked median: too little was measured."
    rating = found.ratings[0]
    value = _with_error(rating.figures.blocked_median_mflops, rating.errors["blocked_median_mflops"])
    return f"Blocked median, the one number: {value} MFLOP/s ({rating.dtype}, {_threads(rating)})."


def comparison(found: Comparison) -> Table:
    """Return the figures of two results, their ratio, and whether it exceeds the errors."""
    table = _numbers("MFLOP/s", "figure", "first", "second", "ratio", "error", "differ")
    for name, each in found.figures.items():
        differ = {None: "-", True: "yes", False: "no"}[each.is_different]
        table.add_row(
            name.removesuffix("_mflops").replace("_", " "),
            "-" if each.first is None else f"{each.first:,.0f}",
            "-" if each.second is None else f"{each.second:,.0f}",
            "-" if each.ratio is None else f"{each.ratio:.3f}",
            "-" if each.error is None else f"{100 * each.error:.1f} %",
            differ,
        )
    lines = [
        f"{which}: {machine}, {target}"
        for which, machine, target in zip(("first", "second"), found.machines, found.targets, strict=True)
    ]
    if found.points_ratio is not None:
        lines.append(
            f"same matrices: {found.points:,}, median ratio of their speeds {found.points_ratio:.3f}"
        )
    table.caption = "\n".join(lines)
    return table


def gallery(listed: Mapping[str, tuple[Mapping[str, int | None], str]]) -> Table:
    """Return the gallery's names with their parameters' defaults and what each matrix is."""
    table = Table(title="gallery:NAME?key=value&key=value", title_justify="left")
    for heading in ("name", "parameters", "matrix"):
        table.add_column(heading)
    for name, (defaults, summary) in listed.items():
        shown = [key if value is None else f"{key}={value}" for key, value in defaults.items()]
        table.add_row(name, " ".join(shown), summary)
    return table


def evaluation(rows: Sequence[EvaluationRow]) -> Table:
    """Return every measurement with the forecast and the error of each model, matrix by matrix."""
    models = list(dict.fromkeys(row.model for row in rows))
    table = _numbers("Forecast against measurement", "matrix", "format", "kernel", "measured", "noise")
    for model in models:
        table.add_column(model, justify="right")
        table.add_column("error", justify="right")
    together: dict[tuple[str, Candidate], dict[str, EvaluationRow]] = {}
    for row in rows:
        together.setdefault((row.matrix, row.record.candidate), {})[row.model] = row
    matrix = None
    for (name, candidate), by_model in together.items():
        record = next(iter(by_model.values())).record
        forecasts = [
            text
            for row in (by_model.get(model) for model in models)
            for text in ((_value(row), f"{100 * row.error:+.0f} %") if row else ("-", "-"))
        ]
        noise = _percent(record.noise)
        table.add_row(
            name if name != matrix else "", *_way(candidate), time(record.time_s), noise, *forecasts
        )
        matrix = name
    return table


def _value(row: EvaluationRow) -> str:
    return time(row.estimate.value) if row.quantity == "time" else energy(row.estimate.value)


def scores(models: Mapping[str, ModelScore]) -> Table:
    """Return the score of each model."""
    table = _numbers(
        "Models",
        "model",
        "mean error",
        "median",
        "90th percentile",
        "in the interval",
        "regret",
        "best found",
        "not forecast",
    )
    for name, score in models.items():
        table.add_row(
            name if score.quantity == "time" else f"{name} ({score.quantity})",
            *(f"{100 * e:.1f} %" for e in (score.mean_error, score.median_error, score.p90_error)),
            "-" if score.coverage is None else f"{100 * score.coverage:.0f} %",
            f"{100 * score.regret:.1f} %",
            f"{100 * score.top1:.0f} %",
            str(score.unforecast),
        )
    return table


def twins(found: Twins) -> Table:
    """Return for each matrix how much longer its twins take, and below them the scores."""
    table = _numbers(
        "Synthetic twins against real matrices", "matrix", "format", "threads", "block", "one product"
    )
    for heading in ("measured again", "paper's twin", "our twin"):
        table.add_column(heading, justify="right")
    matrix = None
    for row in found.rows:
        table.add_row(
            row.matrix if row.matrix != matrix else "",
            row.candidate.format.upper(),
            str(row.candidate.threads),
            f"{row.block} x {row.block}" if row.block > 1 else "-",
            time(row.time_s),
            *(f"{100 * (ratio - 1):+.1f} %" for ratio in (row.again, row.bands, row.structure)),
        )
        matrix = row.matrix
    for score in found.scores:
        table.add_section()
        each = (score.again, score.bands, score.structure)
        for label, errors in zip(("median error", "90th percentile"), zip(*each, strict=True), strict=True):
            named = (f"{label}, {score.matrices}", score.format.upper(), str(score.threads))
            table.add_row(*named, "", "", *(f"{100 * error:.1f} %" for error in errors))
    _add_refused(table, found.refused)
    return table


def _numbers(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left", min_width=len(title))
    words = ("format", "kernel", "matrix", "model", "way", "rows", "device", "machine", "setting", "figure")
    for heading in headings:
        table.add_column(
            heading, justify="left" if heading in words else "right", no_wrap=heading != "matrix"
        )
    return table


def _threads(rating: Rating) -> str:
    return f"{rating.threads} thread{'s' if rating.threads > 1 else ''}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _sizes(rating: Rating) -> str:
    return ", ".join(f"{count:,}" for count in rating.sizes.values()) or f"{len(rating.records):,}, unknown"


def _with_error(value: float | None, error: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f} ± {100 * error:.1f} %" if error is not None else f"{value:,.0f}"


def _way(candidate: Candidate) -> tuple[str, str]:
    return candidate.format.upper(), candidate.kernel


def _interval(low_s: float | None, high_s: float | None) -> str:
    return "unknown" if low_s is None or high_s is None else f"{time(low_s)} - {time(high_s)}"


def _bracketed(low_s: float | None, high_s: float | None) -> str:
    return f"({_interval(low_s, high_s)})" if low_s is not None else "(interval unknown)"


def _share(count: int, total: int) -> str:
    return f"{count:,} ({100 * count / total:.0f} %)" if total else f"{count:,}"


def _add_refused(table: Table, refused: Mapping[str, str]) -> None:
    if refused:
        table.caption = "\n".join(refused.values())
