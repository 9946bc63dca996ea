"""Twins in a table and in a document."""

from __future__ import annotations

import json

from sparsecast.papers.gahvari_2007.bench_reports import DOCUMENTS, twins_tables
from sparsecast.papers.gahvari_2007.twin_comparison import TwinErrors, TwinRow, Twins, TwinScore
from sparsecast.system.tabular import document


def test_twins_are_ratios_with_their_scores(recorded):
    way = recorded.records[0].candidate
    row = TwinRow("nos3", 15_844, way, 2, 4.4e-6, again=1.01, bands=0.947, structure=1.2)
    errors = (TwinErrors(*pair) for pair in ((0.01, 0.01), (0.053, 0.06), (0.2, 0.3)))
    score = TwinScore(way.format, way.threads, 1, *errors)
    twins = Twins((row,), (score,), {"a": "why"})
    whole = json.loads(json.dumps(document(DOCUMENTS["bench --twins FOLDER"], twins)))
    (shown,), (summed,) = whole["rows"], whole["scores"]
    assert (shown["matrix"], shown["format"], shown["block"]) == ("nos3", way.format, 2)
    assert (shown["time_s"], shown["again"], shown["bands"], shown["structure"]) == (4.4e-6, 1.01, 0.947, 1.2)
    assert summed["bands"] == {"median_error": 0.053, "p90_error": 0.06}
    assert whole["refused"] == {"a": "why"}
    rows, scores = twins_tables(twins)
    assert rows.cells()[0][-3:] == ("+1.0 %", "-5.3 %", "+20.0 %") and "2 x 2" in rows.cells()[0]
    assert scores.cells()[0][-1] == "20.0 %, 30.0 %" and rows.below == ("a: why",)
