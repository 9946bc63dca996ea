"""The style of all figures, and the figures of times, machines and costs: what they show."""

from __future__ import annotations

import dataclasses
import math

import pytest

from sparsecast.errors import InputError
from sparsecast.records import Bandwidth
from sparsecast.reports.figures import COLOURS, drawing, error_bars, format_looks, looks, scale_axis
from sparsecast.reports.machine_figures import draw_machine, machine_picture


def test_looks_differ_without_colours_and_formats_look_the_same_everywhere():
    own = looks(map(str, range(2 * len(COLOURS))))
    assert len({(look.colour, look.mark) for look in own.values()}) == len(own)
    assert len({look.mark for look in list(own.values())[: len(COLOURS)]}) == len(COLOURS)
    assert format_looks(["ell"])["ell"] == format_looks(["zzz", "csr"])["ell"]
    assert "zzz" in format_looks(["zzz"])


def test_an_end_that_is_not_known_has_no_bar_and_one_beyond_the_value_no_length():
    below, above = error_bars([2.0, 2.0, 2.0], [1.0, None, 3.0], [5.0, 4.0, None])
    assert below[0] == 1 and math.isnan(below[1]) and below[2] == 0
    assert above[:2] == [3, 2] and math.isnan(above[2])


@pytest.mark.parametrize(
    ("values", "scale", "tick"),
    [((2e-6, 3e-6), "linear", "1 µs"), ((2e-6, 3e-3), "log", "100 µs"), ((None, 0.0), "linear", "1 s")],
)
def test_an_axis_is_logarithmic_where_values_are_far_apart(tmp_path, values, scale, tick):
    with drawing(tmp_path / "a.svg", 3, 3) as figure:
        ax = figure.subplots()
        scale_axis(ax.xaxis, values, "s")
        if scale == "log":
            ax.set_xlim(1e-6, 1e-2)
        assert ax.get_xscale() == scale
    assert f">{tick}<" in (tmp_path / "a.svg").read_text()


def test_a_machine_shows_its_bandwidths_in_order_and_its_products(recorded, tmp_path):
    streams = tuple(
        Bandwidth("read", "cpu", 1, count, count / speed, noise, "", "")
        for count, speed, noise in ((1 << 24, 1e9, None), (1 << 14, 8e9, 0.1), (1 << 19, 9e9, 0.1))
    )
    profile = dataclasses.replace(recorded, bandwidths=streams)
    found = machine_picture(profile)
    (line,) = found.lines
    assert line.bytes == (1 << 14, 1 << 19, 1 << 24)
    assert line.bytes_per_s == pytest.approx((8e9, 9e9, 1e9)) and line.noise == (0.1, 0.1, None)
    assert [speed for _, speed in found.roofs] == pytest.approx([9e9, 1e9])
    assert all(each > 0 for both in found.points.values() for own in both for each in own)
    assert found.setting.split(",")[0] in {r.candidate.dtype for r in recorded.records}
    draw_machine(found, "a machine", tmp_path / "m.svg")
    drawn = (tmp_path / "m.svg").read_text()
    for text in ("bandwidths, with their noise", "cpu 1 thread read", "CSR", "a machine"):
        assert f">{text}<" in drawn
    nothing = machine_picture(dataclasses.replace(recorded, records=(), bandwidths=()))
    with pytest.raises(InputError, match="would show nothing: expected a profile with bandwidths"):
        draw_machine(nothing, "", tmp_path / "n.svg")
