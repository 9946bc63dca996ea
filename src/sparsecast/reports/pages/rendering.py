"""Puts a page together: template, style, charts and the JavaScript that draws these again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import metadata, resources
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecast.machines import storage
from sparsecast.reports.charts.chart import refuse_missing, svg, write_bytes
from sparsecast.system.version import VERSION

if TYPE_CHECKING:
    from sparsecast.reports.charts.chart import Chart

#: What draws a page: Python packages, and what they are imported as.
_LIBRARIES = {"jinja2": "jinja2", "vl-convert-python": "vl_convert"}


def refuse_undrawable() -> None:
    """Raise an InputError if a library that draws pages is missing: before anything else is done."""
    refuse_missing("a page", _LIBRARIES)


def page(template: str, charts: Sequence[Chart], **shown: Any) -> str:
    """Return a page that needs no other file and no network.

    Parameters
    ----------
    template : str
        Name of a template of this folder.
    charts : sequence of Chart
    **shown
        What the template names.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader(__package__, ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    by_name = {
        each.name: {
            "name": each.name,
            "caption": each.caption,
            "svg": Markup(svg(each)),
            "json": Markup(_json_within_script(each.complete())),
        }
        for each in charts
    }
    own = resources.files(__package__)
    script = _libraries() + "\n" + own.joinpath("page.js").read_text(encoding="utf-8")
    rendered = environment.get_template(template).render(
        **shown,
        charts=by_name,
        style=Markup(own.joinpath("page.css").read_text(encoding="utf-8")),
        script=Markup(code_within_script(script)),
        version=VERSION,
        written_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    return str(rendered)


def _json_within_script(spec: Any) -> str:
    """Return JSON that cannot end the element that it stands in, nor begin a comment there."""
    return json.dumps(spec).replace("<", "\\u003c")


def code_within_script(code: str) -> str:
    """Return JavaScript that cannot end the element that it stands in.

    Only the end tag itself is changed, which can stand in texts and regular expressions alone: a ``<`` before
    another ``/`` may be an operator before an expression, or the end of one.
    """
    return re.sub("</(?=script)", r"<\\/", code, flags=re.IGNORECASE)


def _libraries() -> str:
    """Return the JavaScript that draws charts, kept in the data folder: to bundle it takes seconds."""
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
    """Return for each name that of a file ending in .html; no two are alike, nor differ in case alone."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        stem = file_name(name)
        numbered = (f"{stem}-{number}" for number in count(2))
        chosen = next(each for each in chain((stem,), numbered) if each.lower() not in taken)
        taken.add(chosen.lower())
        found[name] = f"{chosen}.html"
    return found


def write(text: str, path: Path) -> int:
    """Write a page, into a folder that is made if need be, and return its bytes.

    An InputError says that the file cannot be written.
    """
    data = text.encode()
    if path.parent.parent.is_dir():
        path.parent.mkdir(exist_ok=True)
    write_bytes(data, path)
    return len(data)
