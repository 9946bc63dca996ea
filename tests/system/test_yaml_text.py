"""Plain data as YAML: what PyYAML reads is what was written."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.system.yaml_text import yaml_text

yaml = pytest.importorskip("yaml")

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["yes", "No", "null", "1e3", "0x1", "a: b", "- a", "~", "a #b"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False).map(lambda value: float(f"{value:.6g}"))
)
PLAIN = st.recursive(
    SCALARS.filter(lambda value: not isinstance(value, float) or math.isfinite(value)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(PLAIN)
def test_what_is_written_is_read_again(value):
    assert yaml.safe_load(yaml_text(value)) == value


def test_a_mapping_is_written_as_people_write_it():
    value = {
        "machine": {"name": "a-b", "caches": [{"level": 1, "bytes": 2}], "simd": ["avx", "fma"]},
        "x": [],
    }
    assert yaml_text(value).splitlines() == [
        "machine:",
        "  name: a-b",
        "  caches:",
        "    - level: 1",
        "      bytes: 2",
        "  simd: [avx, fma]",
        "x: []",
    ]
