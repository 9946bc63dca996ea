"""sparsecast compare: the contract of its document, ties, prices and refusals."""

from __future__ import annotations

import dataclasses
import json

import pytest

from sparsecast.machines.profile import Profile

SMALL, LARGE = "gallery:poisson2d?n=40", "gallery:circuit?n=3000"


@pytest.fixture
def machines(recorded, tmp_path):
    """The recorded machine, one that is twice as fast, and one a hundred times as slow."""

    def scaled(name, factor):
        machine = dataclasses.replace(recorded.machine, processor=name, threads=1)
        records = tuple(
            dataclasses.replace(r, time_s=factor * r.time_s, samples_s=())
            for r in recorded.select(dtype="float64", threads=1)
        )
        path = tmp_path / f"{name}.parquet"
        Profile(machine, records, recorded.matrices).save(path)
        return path

    return {name: scaled(name, factor) for name, factor in (("fast", 0.5), ("slow", 100.0), ("usual", 1.0))}


def test_the_fastest_machine_comes_first_and_ties_are_said(run, machines):
    asked = ("compare", SMALL, LARGE, "--machines", ",".join(map(str, machines.values())))
    done = run(*asked, "--products", "10", "--json")
    assert done.status == 0, done.err
    rows = json.loads(done.out)["rows"]
    assert [row["matrix"] for row in rows] == [SMALL] * 3 + [LARGE] * 3
    for own in (rows[:3], rows[3:]):
        assert [row["machine"].split("-")[0] for row in own] == ["fast", "usual", "slow"]
        assert own[1]["time_s"] == pytest.approx(2 * own[0]["time_s"], rel=0.2)
        assert own[0]["low_s"] < own[0]["time_s"] < own[0]["high_s"]
        assert not own[0]["tie"] and not own[2]["tie"]
        assert own[1]["tie"] == (own[1]["low_s"] <= own[0]["high_s"])
        assert {row["price"] for row in own} == {row["energy_j"] for row in own} == {None}
    once = json.loads(run(*asked, "--products", "1", "--json").out)["rows"]
    assert [10 * row["time_s"] for row in once] == pytest.approx([row["time_s"] for row in rows])


def test_prices_and_a_figure(run, machines, tmp_path):
    name = json.loads(run("compare", SMALL, "--machines", machines["slow"], "--json").out)["rows"][0][
        "machine"
    ]
    figure = tmp_path / "figure.svg"
    asked = ("compare", SMALL, "--machines", machines["slow"], "--price", f"{name}=3.6/h")
    [row] = json.loads(run(*asked, "--json", "--figure", figure).out)["rows"]
    assert row["price"] == pytest.approx(row["time_s"] * 3.6 / 3600)
    assert figure.read_text().startswith("<?xml") and name in figure.read_text()
    shown = run(*asked).out
    assert "price" in shown and "1.00 x" in shown


def test_a_machine_that_cannot_answer_is_named_and_the_others_answer(run, machines):
    asked = ("compare", SMALL, "--machines", f"{machines['fast']},xeon-gold-6154-edr", "--json")
    found = json.loads(run(*asked).out)
    assert len(found["rows"]) == 1 and "no records" in found["refused"][SMALL]["xeon-gold-6154-edr"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--machines", "nobodys"), "profile 'nobodys' is unknown"),
        (("--machines", "{fast}", "--price", "fast=cheap"), "price 'fast=cheap': expected MACHINE=NUMBER/h"),
        (("--machines", "{fast}", "--price", "other=2/h"), "price 'other=2/h': expected one of the machines"),
        (("--machines", "{fast}", "--products", "0"), "--products"),
        (("--machines", "{fast}", "--figure", "figure.bmp"), "figure.bmp: expected a name that ends in"),
        (("--machines", "xeon-gold-6154-edr"), "has no records"),
    ],
)
def test_what_cannot_be_is_one_line(run, machines, data_folder, arguments, told):
    done = run("compare", SMALL, *(each.format(fast=machines["fast"]) for each in arguments))
    assert done.status == 2 and done.err.count("\n") == 1 and told in done.err
