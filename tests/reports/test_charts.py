"""What all charts share: looks, axes, files."""

import pytest

from sparsecast.errors import InputError
from sparsecast.matrices.gallery import gallery
from sparsecast.reports.charts.chart import (
    COLOURS,
    FILE_TYPES,
    Chart,
    axis,
    format_look,
    look,
    refuse_undrawable,
    render,
)
from sparsecast.reports.charts.patterns import structure


def of_names(encoding):
    """Return the colour, or shape, of each name."""
    return dict(zip(encoding["scale"]["domain"], encoding["scale"]["range"], strict=True))


def test_things_differ_without_colours_and_a_format_has_one_colour_in_all_charts():
    encodings = look("name", map(str, range(len(COLOURS))))
    colours, shapes = of_names(encodings["color"]), of_names(encodings["shape"])
    assert len(set(colours.values())) == len(COLOURS) and len(set(shapes.values())) >= 8
    for channel in ("color", "shape"):
        several = of_names(format_look(["ZZZ", "ELL", "CSR", "ELL"])[channel])
        assert of_names(format_look(["ELL"])[channel])["ELL"] == several["ELL"]
        assert list(several) == ["CSR", "ELL", "ZZZ"]


@pytest.mark.parametrize(
    ("values", "kind"), [((2e-6, 3e-6), None), ((2e-6, 3e-3), "log"), ((None, 0.0), None), ((), None)]
)
def test_an_axis_is_logarithmic_where_values_are_far_apart(values, kind, drawn):
    encoding = axis("at", "time", values, "s")
    assert encoding["scale"].get("type") == kind
    rows = [{"at": value} for value in values]
    svg = drawn(Chart("c", "", {"data": {"values": rows}, "mark": "point", "encoding": {"x": encoding}}))
    assert "time" in svg and "µs" in svg if any(values) else True


def test_an_axis_over_hundreds_of_powers_has_few_ticks():
    ticks = axis("at", "time", (1e-308, 1e-6), "s")["axis"]["values"]
    assert len(ticks) < 20 and ticks[0] <= 1e-308 and ticks[-1] > 1e-30


def test_what_cannot_be_drawn_is_refused(tmp_path):
    with pytest.raises(InputError) as unknown:
        refuse_undrawable(tmp_path / "a.bmp")
    assert ".png, .svg, .pdf" in str(unknown.value)
    chart = Chart("c", "", {"data": {"values": []}, "mark": "point"})
    with pytest.raises(InputError):
        render(chart, "", tmp_path / "absent" / "a.svg")
    assert not list(tmp_path.iterdir())


BEGINNINGS = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", FILE_TYPES)
def test_each_type_of_file_is_written(tmp_path, suffix):
    path = tmp_path / f"chart{suffix}"
    render(structure(gallery("circuit", n=90)), "A title with $b_{ and <b>", path)
    assert path.read_bytes().startswith(BEGINNINGS[suffix])
