"""Puts a page together: template, style, charts and the JavaScript that draws these again."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from sparsecast.errors import InputError
from sparsecast.files import replacement
from sparsecast.machines import storage
from sparsecast.reports.figures import unwritable
from sparsecast.reports.pages.charts import Chart, drawn
from sparsecast.version import VERSION

#: What draws a page: Python packages, and what they are imported as.
_LIBRARIES = {"jinja2": "jinja2", "vl-convert-python": "vl_convert", "matplotlib": "PIL"}


def refuse_undrawable() -> None:
    """Raise an InputError if a library that draws pages is missing: before anything else is done."""
    for package, module in _LIBRARIES.items():
        if importlib.util.find_spec(module) is None:
            raise InputError(
                f"a page needs the Python package {package}: expected it to be installed; "
                f"pip install 'sparsecast[report]'"
            )


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
            "svg": Markup(drawn(each)),
            "json": Markup(_within_script(json.dumps(each.spec))),
        }
        for each in charts
    }
    own = resources.files(__package__)
    script = _libraries() + "\n" + own.joinpath("page.js").read_text(encoding="utf-8")
    rendered = environment.get_template(template).render(
        **shown,
        charts=by_name,
        style=Markup(own.joinpath("page.css").read_text(encoding="utf-8")),
        script=Markup(_within_script(script)),
        version=VERSION,
        written_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    return str(rendered)


def _within_script(text: str) -> str:
    """Return text that cannot end the element that it stands in."""
    return text.replace("</", "<\\/")


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


def write(text: str, path: Path) -> int:
    """Write a page, and return its bytes; an InputError says that the file cannot be written."""
    data = text.encode()
    try:
        with replacement(path) as place:
            place.write_bytes(data)
    except OSError as error:
        raise unwritable(str(path), error) from error
    return len(data)
