"""JSON documents: what design section 4 promises, and nothing JSON cannot say."""

from __future__ import annotations

import json

from sparsecast.papers.gahvari_2007.bench_reports import twins_document
from sparsecast.papers.gahvari_2007.twin_comparison import TwinRow, Twins, TwinScore
from sparsecast.reports import documents


def test_a_machine_document_has_its_name(recorded):
    document = json.loads(json.dumps(documents.machine(recorded.machine)))
    assert document["name"] == recorded.name
    assert document["threads"] == recorded.machine.threads


def test_twins_are_ratios_with_their_scores(recorded):
    way = recorded.records[0].candidate
    row = TwinRow("nos3", 15_844, way, 2, 4.4e-6, again=1.01, bands=0.947, structure=1.2)
    score = TwinScore(way.format, way.threads, 1, (0.01, 0.01), (0.053, 0.06), (0.2, 0.3))
    document = json.loads(json.dumps(twins_document(Twins((row,), (score,), {"a": "why"}))))
    (shown,), (summed,) = document["rows"], document["scores"]
    assert (shown["matrix"], shown["format"], shown["block"]) == ("nos3", way.format, 2)
    assert (shown["time_s"], shown["again"], shown["bands"], shown["structure"]) == (4.4e-6, 1.01, 0.947, 1.2)
    assert summed["bands"] == {"median_error": 0.053, "p90_error": 0.06}
    assert document["refused"] == {"a": "why"}
