"""Assembles a page: template, style, charts, and the JavaScript that makes them interactive.

Two short pages are here: that of a program, with what plans save of the time of its products, and that of a
comparison of machines.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import metadata, resources
from itertools import chain, count
from pathlib import Path
from typing import Any

from sparsecast.machines import storage
from sparsecast.reports.charts.chart import Chart, refuse_missing, svg
from sparsecast.reports.charts.intervals import intervals, machine_rows, row
from sparsecast.results.placement import Placement, PlacementsByMatrix
from sparsecast.results.watching import Seen
from sparsecast.system.files import write_file
from sparsecast.system.texts import counted
from sparsecast.system.version import VERSION


def refuse_undrawable() -> None:
    """Refuse a page if a library is missing, before anything else is done."""
    refuse_missing("a page", {"jinja2": "jinja2", "vl-convert-python": "vl_convert"})


def page(template: str, charts: Sequence[Chart], **shown: Any) -> str:
    """Return a page that needs no other file and no network.

    `template` is the name of a template in this folder, and `shown` has its variables.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader(__package__, ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    by_name = {
        chart.name: {
            "name": chart.name,
            "caption": chart.caption,
            "svg": Markup(svg(chart)),
            "json": Markup(json.dumps(chart.complete()).replace("<", "\\u003c")),
        }
        for chart in charts
    }
    folder = resources.files(__package__)
    script = _libraries() + "\n" + folder.joinpath("page.js").read_text(encoding="utf-8")
    rendered = environment.get_template(template).render(
        **shown,
        charts=by_name,
        style=Markup(folder.joinpath("page.css").read_text(encoding="utf-8")),
        script=Markup(code_within_script(script)),
        version=VERSION,
        written_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    return str(rendered)


def code_within_script(code: str) -> str:
    """Return JavaScript that cannot end its script element.

    Only the end tag is changed, which can be in texts and regular expressions alone: other ``</`` may be an
    operator before a regular expression, or the end of one.
    """
    return re.sub("</(?=script)", r"<\\/", code, flags=re.IGNORECASE)


def _libraries() -> str:
    """Return the JavaScript that draws charts, cached in the data folder: bundling it takes seconds."""
    path = storage.home() / "cache" / f"vega-{metadata.version('vl-convert-python')}.js"
    if path.exists():
        return path.read_text(encoding="utf-8")
    import vl_convert

    bundle: Any = vl_convert.javascript_bundle  # whose types ask for a snippet, which it does without
    bundled = str(bundle())
    storage.write_atomically(path, lambda place: place.write_text(bundled, encoding="utf-8"))
    return bundled


def file_name(text: str) -> str:
    """Return the name of a matrix as the name of a file."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.") or "matrix"


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Return for each name a file name ending in .html, distinct without regard to case."""
    files: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        stem = file_name(name)
        numbered = (f"{stem}-{number}" for number in count(2))
        chosen = next(candidate for candidate in chain((stem,), numbered) if candidate.lower() not in taken)
        taken.add(chosen.lower())
        files[name] = f"{chosen}.html"
    return files


def write(text: str, path: Path) -> int:
    """Write a page, into its folder or a new one, and return its bytes; an InputError if that fails."""
    data = text.encode()
    if path.parent.parent.is_dir():
        path.parent.mkdir(exist_ok=True)
    write_file(path, data)
    return len(data)


#: Matrices that the chart shows.
_DRAWN = 20


def run_page(seen: Seen, program: str) -> str:
    """Return the page as HTML; `program` is its command line."""
    table, rows = seen.table(), []
    for number, products in enumerate(seen.products[:_DRAWN], 1):
        place, time_s = products.counted.kind.place, products.counted.time_s
        label = f"{number}. {place}, {products.counted.kind.format.upper()}"
        rows.append(row(label, place, "as it ran", time_s, None, None))
        if (saving := products.saving) is not None and not seen.is_applied:
            ends = saving.time_s, saving.high_s, saving.low_s
            rows.append(row(label, place, "by a plan", *(time_s - (end or 0.0) for end in ends)))
    caption = "Time of all products of each matrix; by a plan with its interval, the plan itself paid."
    return page(
        "run.html",
        [intervals("products", caption, rows, "all products", "s")] if rows else [],
        title=program,
        sentences=seen.sentences(),
        notes=seen.notes,
        head=table.headings,
        rows=table.cells(),
        unplanned=[f"{p.counted.kind.place}: {p.unplanned}" for p in seen.products if p.unplanned],
    )


def comparison_page(matrices: Sequence[str], comparison: PlacementsByMatrix) -> str:
    """Return the page as HTML; `matrices` are as given by the user."""
    sections: list[dict[str, Any]] = [
        {
            "place": f"matrix-{place}",
            "name": name,
            "answer": " ".join(answer.sentences()) if answer.placements else "No machine has a forecast.",
            "charts": _charts(answer.placements, f"matrix-{place}"),
            "table": answer.table(),
            "refused": answer.refused,
        }
        for place, (name, answer) in enumerate(comparison.answers.items())
    ]
    done, compared = comparison.rows[0].products, counted(len(comparison.machines), "machine")
    prices = {row.machine: row.price_per_hour for row in comparison.rows if row.price_per_hour is not None}
    priced = [f"--price {shlex.quote(f'{name}={price:g}/h')}" for name, price in prices.items()]
    given = " ".join(map(shlex.quote, matrices))
    machines = shlex.quote(",".join(comparison.machines))
    command = f"sparsecast compare {given} --machines {machines} --products {done}"
    return page(
        "comparison.html",
        [chart for section in sections for chart in section["charts"]],
        title="Machines compared",
        subtitle=f"Forecast of {counted(done, 'product')} y = A x on {compared}",
        notes=comparison.notes,
        matrices=sections,
        machine_rows=list(comparison.machines.items()),
        command=" ".join([command, *priced]),
    )


def _charts(compared: Sequence[Placement], place: str) -> list[Chart]:
    """Return a chart for each quantity of at least one machine."""
    caption = "Forecast {} of all products on each machine, the best first; the bar holds 90 of 100."
    quantities = (("time", "total", "s"), ("energy", "energy", "J"), ("price", "price", ""))
    drawn = [(name, machine_rows(compared, quantity), unit) for name, quantity, unit in quantities]
    return [
        intervals(f"{place}-{name}", caption.format(name), rows, name, unit)
        for name, rows, unit in drawn
        if any(row["value"] is not None for row in rows)
    ]
