"""Shared parts of all charts: colours, axes, tooltips, and files.

A chart is a function that returns a `Chart`: a specification in Vega-Lite (Satyanarayan, Moritz,
Wongsuphasawat and Heer, 2017), whose data are rows of numbers. Nothing else draws.
"""

from __future__ import annotations

import importlib.util
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsecast.errors import InputError
from sparsecast.formats import FORMATS
from sparsecast.formats.libraries import LIBRARIES
from sparsecast.system.files import write_file

Spec = dict[str, Any]

#: Colours for the colour-blind: Okabe and Ito (2008), and two more for charts with many formats.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#B8A800", "#777777", "#7B4FA3")

#: Shapes, in addition to the colours.
_SHAPES = (
    *("circle", "square", "triangle-up", "diamond"),
    *("triangle-down", "cross", "triangle-left", "triangle-right"),
)

#: Colour of explanatory lines: an axis of equality, a cache, a roof.
GREY = "#6E6E6E"

#: Types of files of charts.
FILE_TYPES = (".png", ".svg", ".pdf")

#: Sizes of a chart without its axes, in pixels, and of a line of a chart with names.
WIDTH, HEIGHT, LINE = 560, 300, 26

#: Letters of a line of a title, pixels of one of its letters, and pixels of a file per pixel of a chart.
_TITLE_LETTERS, _LETTER, _SCALE = 90, 7, 2.0

#: Greatest number of powers of ten with a tick on a logarithmic axis: hundreds take seconds to draw.
_MOST_POWERS = 15

#: Least ratio of largest to smallest for a logarithmic axis.
_WIDE = 8.0

#: Pixels of a logarithmic axis beyond the first and last mark, which would otherwise be cut.
_PADDING = 8

#: The label of a number on an axis.
_NUMBER = "format(datum.value, abs(datum.value) < 1 ? '.3~g' : '.3~s')"

#: Charts together, each with colours and shapes of its own.
_OWN_LOOKS: Spec = {"resolve": {"scale": dict.fromkeys(("color", "shape", "strokeDash"), "independent")}}

_CONFIG: Spec = {
    "axis": {
        "labelLimit": 320,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelFlush": False,
        "labelSeparation": 6,
        "gridOpacity": 0.35,
    },
    "concat": {"spacing": 30},
    "legend": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 400,
        "columns": 4,
        "orient": "bottom",
        "symbolOpacity": 1,
    },
    "title": {"anchor": "start", "fontSize": 13, "subtitleFontSize": 12, "frame": "group", "offset": 10},
    "view": {"stroke": None},
}


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its caption; a notebook draws it if vl-convert is installed."""

    name: str
    caption: str
    spec: Spec

    def complete(self, title: str = "", background: str | None = None) -> Spec:
        """Return the specification with its style; transparent without a background."""
        text, subtitle = (_wrapped(words, _TITLE_LETTERS) for words in (title, self.caption))
        named = {"title": {"text": text, "subtitle": subtitle, "frame": "bounds"}} if title else {}
        return {**self.spec, **named, "config": _CONFIG, "background": background}

    def _repr_svg_(self) -> str:
        return svg(self)


def svg(chart: Chart) -> str:
    """Return a chart as SVG."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(chart.complete()))


def refuse_undrawable(path: Path) -> None:
    """Refuse a file that no chart can be drawn into, before anything is measured for it."""
    if path.suffix not in FILE_TYPES:
        raise InputError(f"figure {path}: expected a name that ends in {', '.join(FILE_TYPES)}; name it so")
    refuse_missing(f"figure {path}", {"vl-convert-python": "vl_convert"})


def refuse_missing(what: str, packages: dict[str, str]) -> None:
    """Raise an InputError if a Python package is not installed; `packages` are their modules by name."""
    for package, module in packages.items():
        if importlib.util.find_spec(module) is None:
            raise InputError(
                f"{what} needs the Python package {package}: expected it to be installed; "
                f"pip install 'sparsecast[report]'"
            )


def render(chart: Chart, title: str, path: Path) -> None:
    """Draw a chart under a title into a file of FILE_TYPES."""
    import vl_convert

    refuse_undrawable(path)
    spec = chart.complete(title, "white")
    if path.suffix == ".svg":
        data = vl_convert.vegalite_to_svg(spec).encode()
    elif path.suffix == ".png":
        data = vl_convert.vegalite_to_png(spec, scale=_SCALE)
    else:
        data = vl_convert.vegalite_to_pdf(spec)
    write_file(path, data)


def _wrapped(text: str, letters: int) -> list[str]:
    """Return the lines of a title; a percent sign stays with its number."""
    return textwrap.wrap(text.replace(" %", "\u00a0%"), letters, break_on_hyphens=False)


def titled(chart: Chart) -> Spec:
    """Return the specification of a chart among others, with its caption above."""
    return {**chart.spec, "title": _wrapped(chart.caption, chart.spec["width"] // _LETTER)}


def panels(name: str, caption: str, charts: Sequence[Chart], columns: int) -> Chart:
    """Return similar charts in columns, each under its caption."""
    return Chart(name, caption, {"concat": [titled(chart) for chart in charts], "columns": columns})


def beside(name: str, *columns: Sequence[Chart]) -> Chart:
    """Return columns of different charts, each with its caption and its own colours."""
    parts = [{"vconcat": [titled(chart) for chart in charts], **_OWN_LOOKS} for charts in columns]
    return Chart(name, "", {"hconcat": parts, **_OWN_LOOKS})


def stacked(name: str, charts: Sequence[Chart]) -> Chart:
    """Return whole charts one below the other."""
    return Chart(name, "", {"vconcat": [chart.spec for chart in charts], **_OWN_LOOKS})


def layer(mark: str | Spec, encoding: Spec, rows: Sequence[Mapping[str, Any]] | None = None) -> Spec:
    """Return marks of one kind: of rows of their own, or of those of the whole chart."""
    data = {} if rows is None else {"data": {"values": list(rows)}}
    return {**data, "mark": mark, "encoding": encoding}


def dot(size: int = 80) -> Spec:
    """Return the mark of a value."""
    return {"type": "point", "filled": True, "size": size, "opacity": 1}


def spans(encoding: Spec, channel: str, low: str, high: str, width: int, opacity: float = 0.4) -> Spec:
    """Return bars along the axis `channel` over the interval of each row, of those that have one."""
    ends = {channel: {**encoding[channel], "field": low}, f"{channel}2": {"field": high}}
    bars = layer({"type": "rule", "strokeWidth": width, "opacity": opacity}, {**encoding, **ends})
    return {**bars, "transform": [{"filter": f"isValid(datum.{low}) && isValid(datum.{high})"}]}


def axis(
    field: str, title: str, values: Iterable[float | None] = (), unit: str = "", *, is_log: bool | None = None
) -> Spec:
    """Return the encoding of numbers along an axis: from 0, or logarithmic for a large ratio.

    Its labels have SI prefixes, and the unit after them.
    """
    positive = [value for value in values if value is not None and value > 0]
    if is_log is None:
        is_log = bool(positive) and max(positive) > _WIDE * min(positive)
    scale = {"type": "log", "nice": False, "padding": _PADDING} if is_log else {"zero": True}
    label = f"replace(format(datum.value, '.3~s'), /([^0-9]*)$/, ' $1{unit}')" if unit else _NUMBER
    ticks = {"values": _ticks(min(positive), max(positive))} if is_log else {}
    named = {"field": field, "type": "quantitative", "title": title}
    return {**named, "scale": scale, "axis": {"labelExpr": label, **ticks}}


def _ticks(least: float, most: float) -> list[float]:
    """Return the ticks of a logarithmic axis: powers of ten, and some between them if these are few."""
    decades = math.log10(most / least)
    of_few = {0.7: tuple(range(1, 10)), 1.2: (1, 2, 3, 5), 2: (1, 2, 5), 3: (1, 3)}
    digits = next((digits for most_decades, digits in of_few.items() if decades < most_decades), (1,))
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
    step = max(1, math.ceil((last - first) / _MOST_POWERS)) if len(digits) == 1 else 1
    return [float(f"{digit}e{power}") for power in range(first, last + 1, step) for digit in digits]


def log_from_0(field: str, title: str, most: int) -> Spec:
    """Return the encoding of counts from 0 along an axis: logarithmic if they are large."""
    encoding = axis(field, title)
    encoding["axis"]["tickMinStep"] = 1
    if most > 2 * _WIDE:
        powers = [10**power for power in range(math.floor(math.log10(most)) + 1)]
        encoding["scale"] = {"type": "symlog", "nice": False, "domainMin": 0}
        encoding["axis"] = {**encoding["axis"], "values": [0, *powers]}
    return encoding


def counts_axis(field: str, title: str, counts: Iterable[int]) -> Spec:
    """Return the encoding of numbers of ranks, products and the like: powers of 2, each number labelled."""
    named = sorted(set(counts))
    scale: Spec = {"zero": False}
    if len(named) > 1:
        scale = {"type": "log", "base": 2, "nice": False, "padding": _PADDING}
    ticks = {"values": named[:: math.ceil(len(named) / 12)], "format": ",", "grid": False}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": ticks}


def look(field: str, names: Iterable[str], title: str | None = None, fixed: Sequence[str] = ()) -> Spec:
    """Return the encodings of names: a colour and a shape for each.

    `fixed` names come first in the order of colours, shown or not; `names` may repeat.
    """
    shown = list(dict.fromkeys(names))
    ordered = list(dict.fromkeys((*fixed, *shown)))
    places = [ordered.index(name) for name in shown]
    shared = {"field": field, "type": "nominal", "title": title}
    return {
        channel: {**shared, "scale": {"domain": shown, "range": [range_[k % len(range_)] for k in places]}}
        for channel, range_ in (("color", COLOURS), ("shape", _SHAPES))
    }


def format_look(names: Iterable[str]) -> Spec:
    """Return the encodings of formats, the same in all charts."""
    known = [name.upper() for name in (*FORMATS.names(), *LIBRARIES.names())]
    return look("format", sorted(names), "format", known)


def tooltip(texts: Mapping[str, str], **numbers: str) -> list[Spec]:
    """Return the encoding of a tooltip with the names of its fields; numbers have three digits."""
    number = {"type": "quantitative", "format": ".3~s"}
    named = [{"field": field, "title": title} for field, title in texts.items()]
    return named + [{"field": field, **number, "title": title} for field, title in numbers.items()]


def zoom() -> list[Spec]:
    """Return the parameters to move and zoom a chart: by the wheel with Ctrl, so that pages can scroll."""
    select = {"type": "interval", "zoom": "wheel![event.ctrlKey]"}
    return [{"name": "zoom", "select": select, "bind": "scales"}]
