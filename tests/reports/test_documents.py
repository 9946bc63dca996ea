"""JSON documents: what design section 4 promises, and nothing JSON cannot say."""

from __future__ import annotations

import dataclasses
import json
import math

from sparsecast.features.analysis import structure
from sparsecast.features.structure import Structure
from sparsecast.matrices.gallery import gallery
from sparsecast.papers.gahvari_2007.bench_reports import twins_document
from sparsecast.papers.gahvari_2007.twin_comparison import TwinRow, Twins, TwinScore
from sparsecast.records import Bandwidth
from sparsecast.reports import documents


def test_what_json_cannot_say_becomes_null():
    value = {"a": [1.0, math.nan, (math.inf, -math.inf)], "b": {"c": 2}, "d": "nan", "e": None}
    assert documents.finite(value) == {"a": [1.0, None, [None, None]], "b": {"c": 2}, "d": "nan", "e": None}


def test_a_structure_document_has_every_field():
    found = structure(gallery("banded", n=50))
    document = json.loads(json.dumps(documents.structure("banded", found, ["a note"])))
    assert document["matrix"] == {"name": "banded", "rows": 50, "cols": 50, "nnz": found.nnz}
    assert Structure.from_dict(document["structure"]) == found
    assert document["notes"] == ["a note"]


def test_streams_carry_their_bandwidth():
    (document,) = documents.bandwidths([Bandwidth("read", "cpu", 2, 8 << 20, 1e-3, 0.01, "now", "1.0")])
    assert document["bandwidth_bytes_per_s"] == (8 << 20) / 1e-3
    assert set(document) == {field.name for field in dataclasses.fields(Bandwidth)} | {
        "bandwidth_bytes_per_s"
    }


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
