"""Fixtures of the tests of reports: charts, their rows, an evaluation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparsecast.benchmark.evaluation import Scoring
from sparsecast.machines.profile import Profile
from sparsecast.records import Estimate
from sparsecast.reports.charts.chart import Chart, render
from sparsecast.results.evaluation import Evaluation


@pytest.fixture
def drawn(tmp_path: Path) -> Callable[[Chart], str]:
    """Draw a chart as SVG, which the other types of files are made of, and return the text."""

    def draw(chart: Chart) -> str:
        render(chart, "A title with $b_{ and <b>", tmp_path / "chart.svg")
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


@pytest.fixture
def evaluation(recorded: Profile) -> Evaluation:
    """An evaluation of two formats on two matrices by five models; one of them forecasts energy."""
    scoring = Scoring(recorded.machine)
    template = dataclasses.replace(recorded.records[0], energy_j=2e-6, measured_at="2026-01-01T10:00:00")
    for matrix, factor in (("m", 1.0), ("n", 128.0)):
        records = [
            dataclasses.replace(
                template,
                candidate=dataclasses.replace(template.candidate, format=name),
                matrix=matrix,
                time_s=1e-6 * factor,
            )
            for name in ("csr", "ell")
        ]
        scoring.add_records(matrix, records)
        for number, model in enumerate(("best", "b", "c", "d", "joules")):
            value = 1e-6 * factor * (1 + number / 10)
            estimates = [Estimate(r.candidate, value, value / 2, None) for r in records]
            scoring.add_estimates(matrix, model, "energy" if model == "joules" else "time", estimates)
        again = dataclasses.replace(records[0], time_s=1.2e-6 * factor)
        if matrix == "m":
            scoring.add_again(matrix, [again])
    return scoring.evaluation("p")
