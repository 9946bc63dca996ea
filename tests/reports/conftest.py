"""Fixtures of the tests of charts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparsecast.reports.charts.chart import FILE_TYPES, Chart, render

BEGINNINGS = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF"}


@pytest.fixture
def drawn(tmp_path: Path) -> Callable[[Chart], str]:
    """Draw a chart into a file of each kind, and return the SVG."""

    def draw(chart: Chart) -> str:
        for suffix in FILE_TYPES:
            path = tmp_path / f"chart{suffix}"
            render(chart, "A title with $b_{ and <b>", path)
            assert path.read_bytes().startswith(BEGINNINGS[suffix])
        return (tmp_path / "chart.svg").read_text(encoding="utf-8")

    return draw


@pytest.fixture
def rows_of() -> Callable[[Chart], list[dict[str, Any]]]:
    """Return all rows of data of a chart, in their order."""

    def gathered(spec: Any) -> list[dict[str, Any]]:
        if isinstance(spec, list):
            return [row for part in spec for row in gathered(part)]
        if not isinstance(spec, dict):
            return []
        own = spec["data"]["values"] if "data" in spec else []
        parts = (spec.get(key) for key in ("layer", "concat", "hconcat", "vconcat"))
        return [*own, *(row for part in parts for row in gathered(part))]

    return lambda chart: gathered(chart.spec)
