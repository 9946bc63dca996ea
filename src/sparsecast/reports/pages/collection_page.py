"""The page of a collection of matrices: the quality of the forecasts, and where and why they are worst."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsecast.benchmark.evaluation import worst_of
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.models.work import capacity
from sparsecast.reports.charts import scores
from sparsecast.reports.charts.chart import Chart
from sparsecast.reports.pages.matrix_page import machine_rows, trust_rows
from sparsecast.reports.pages.rendering import page
from sparsecast.results.columns import shown_storage
from sparsecast.results.evaluation import ModelScore
from sparsecast.results.reports import CollectionReport, MatrixReport, Rarity
from sparsecast.system import texts
from sparsecast.system.texts import counted

#: Matrices whose errors are explained, and features that each explanation names.
_WORST, _RARITIES = 10, 3

#: A product whose bytes are between this part of a cache and its inverse is said to be at the edge of it.
_EDGE = 0.5

#: Rows about trust that are of the profile; the others are of one matrix.
_ABOUT_PROFILE = 4

_MATRIX_HEAD = (
    *("matrix", "chosen", "non-zeros", "a row", "forecast", "interval"),
    *("measured", "error", "fastest measured", "regret"),
)


def collection_page(collection: CollectionReport, links: Mapping[str, str]) -> str:
    """Return the page as HTML; `links` has the relative addresses of the pages of its matrices, by name."""
    score, machine = collection.evaluation.models.get(collection.model), collection.evaluation.profile
    first = next(iter(collection.reports.values()))
    return page(
        "collection.html",
        _charts(collection, score),
        title=", ".join(collection.matrices),
        subtitle=f"{counted(len(collection.reports), 'matrix')}, y = A x on {machine}, "
        f"model {collection.model}",
        answer=_answer(collection, score),
        notes=list(
            dict.fromkeys(note for report in collection.reports.values() for note in report.prediction.notes)
        ),
        score=score,
        unmeasured=collection.unmeasured,
        evaluate=_command("evaluate", collection),
        worst=[
            _explained(collection, name, error, links[name])
            for name, error in worst_of(collection.rows, _WORST)
        ],
        repeats=collection.evaluation.repeats_sentence(),
        errors=collection.evaluation.table() if score else None,
        sizes=collection.evaluation.sizes() if score else None,
        choices=collection.evaluation.choices() if score else None,
        matrix_head=_MATRIX_HEAD,
        matrix_rows=[(name, links[name], _matrix_row(collection, name)) for name in collection.reports],
        refused=list(collection.refused.items()),
        left_out=list(collection.evaluation.refused.items()),
        machine_rows=machine_rows(first),
        trust_rows=trust_rows(first)[:_ABOUT_PROFILE],
        commands=[_command(name, collection) for name in ("evaluate", "report")],
    )


def _charts(collection: CollectionReport, score: ModelScore | None) -> list[Chart]:
    if score is None:
        return []
    models = collection.evaluation.models
    by_error = sorted(score.formats.items(), key=lambda item: item[1].median_error)
    of_formats = {shown_storage(name): own for name, own in by_error}
    sentence = "Dot: median of the absolute errors; bar: to where 90 of 100 lie."
    return [
        scores.agreement(collection.rows, score),
        scores.errors("errors-by-format", f"Errors of {collection.model} by format. {sentence}", of_formats),
        scores.errors("errors-by-model", f"Errors by model. {sentence}", models),
        scores.regret(models),
        scores.coverage(models),
    ]


def _answer(collection: CollectionReport, score: ModelScore | None) -> str:
    if score is None:
        return (
            f"No measurement was kept of these {len(collection.reports):,} matrices: only forecasts are here."
        )
    matrices = counted(len({row.matrix for row in collection.rows}), "matrix")
    noise, noise_name = scores.noise_band(score)
    noise_sentence = "" if noise is None else f" Noise: {100 * noise:.1f} % ({noise_name})."
    return (
        f"{counted(score.forecasts, 'forecast')} of {matrices} against measurements: median error "
        f"{100 * score.median_error:.1f} %, 90 of 100 below {100 * score.p90_error:.0f} %.{noise_sentence} "
        f"The format chosen takes {100 * score.regret:.1f} % longer than the fastest one."
    )


def _matrix_row(collection: CollectionReport, name: str) -> tuple[str, ...]:
    """Return the row of a matrix: its choice, held out of the fit if it was measured."""
    report, rows = collection.reports[name], [row for row in collection.rows if row.matrix == name]
    about = report.structure
    size = f"{about.nnz:,}", f"{about.row_lengths.mean:.1f}"
    if not rows:
        best = report.prediction[0]
        span = texts.interval(best.low_s, best.high_s)
        return (best.candidate.format.upper(), *size, texts.time(best.time_s), span, "not measured", *"---")
    chosen = min(rows, key=lambda row: row.estimate.value)
    fastest = min(rows, key=lambda row: row.measured)
    return (
        chosen.estimate.candidate.format.upper(),
        *size,
        texts.time(chosen.estimate.value),
        texts.interval(chosen.estimate.low, chosen.estimate.high),
        texts.time(chosen.measured),
        f"{100 * chosen.error:+.0f} %",
        f"{fastest.estimate.candidate.format.upper()}, {texts.time(fastest.measured)}",
        f"{100 * (chosen.measured / fastest.measured - 1):.0f} %",
    )


def _explained(collection: CollectionReport, name: str, error: float, link: str) -> dict[str, Any]:
    """Return known reasons for the bad forecast of a matrix."""
    rows = sorted((row for row in collection.rows if row.matrix == name), key=lambda row: row.error)
    low, high = (
        f"{100 * row.error:+.0f} % ({row.estimate.candidate.format.upper()})" for row in (rows[0], rows[-1])
    )
    held = [row.is_covered for row in rows if row.is_covered is not None]
    sentence = f"{counted(len(rows), 'format')}, from {low} to {high}"
    if held:
        sentence += f"; {sum(held)} of {len(held)} measurements within their intervals"
    reasons = [_rarity(rarity) for rarity in collection.rarities.get(name, ())[:_RARITIES]]
    reasons += _at_the_edge(collection.reports[name])
    differences = [d for row in rows for d in (row.record.noise, row.repeat_difference) if d is not None]
    noise = float(np.median(differences)) if differences else 0.0
    if noise >= abs(error) / 2:
        reasons.append(f"Its measurements themselves differ by {100 * noise:.1f} %.")
    return {
        "name": name,
        "link": link,
        "error": f"{100 * error:+.0f} %",
        "said": f"{sentence}.",
        "reasons": reasons
        or ["None of its features is unusual among the matrices that the model learned from."],
    }


def _rarity(rarity: Rarity) -> str:
    """Return a sentence on the unusual features of a matrix."""
    what = f"{rarity.trait[0].upper()}{rarity.trait[1:]}: {_number(rarity.value)}"
    end = f"{'at most' if rarity.is_large else 'at least'} {_number(rarity.end)}"
    if not rarity.beyond:
        much = "more" if rarity.is_large else "less"
        return (
            f"{what}, {much} than any of the {rarity.others:,} matrices that the model learned from ({end}): "
            f"the forecast reaches beyond them."
        )
    much = f"{'has' if rarity.beyond == 1 else 'have'} as {'much' if rarity.is_large else 'little'}"
    return (
        f"{what}; only {rarity.beyond} of the {rarity.others:,} matrices that the model learned from {much}."
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


def _at_the_edge(report: MatrixReport) -> list[str]:
    """Return a sentence if the data of a product hardly fit a cache, or hardly exceed it."""
    machine, threads = report.profile.machine, report.target.threads
    needed = int(report.target.format_bytes("csr", RowBlocks.of(report.structure))[0])
    levels = {cache.level: capacity(cache, threads) for cache in machine.product_caches if cache.level > 1}
    return [
        f"Matrix and vectors in CSR take {texts.size(needed)}, about the {texts.size(size)} of L{level}: "
        f"little decides there what a product finds in the cache."
        for level, size in levels.items()
        if _EDGE <= needed / size <= 1 / _EDGE
    ]


def _command(name: str, collection: CollectionReport) -> str:
    """Return the command that measures the collection, or that writes this page."""
    targets = [report.target for report in collection.reports.values()]
    dtypes = sorted({target.dtype for target in targets})
    setting = f"--threads {targets[0].threads}"
    if len(dtypes) == 1:  # else each matrix has its own
        setting += f" --dtype {dtypes[0]}"
    if name == "report":
        planned = (report.plan.products for report in collection.reports.values() if report.plan)
        setting += "".join(f" --products {count}" for count in list(planned)[:1])
        setting += f" --model {collection.model}"
    matrices = " ".join(map(shlex.quote, collection.matrices))
    return f"sparsecast {name} {matrices} --profile {shlex.quote(collection.evaluation.profile)} {setting}"
