"""A calibration that other programs disturbed too much: commands refuse to forecast from it."""

import dataclasses
import json

import pytest

import sparsecast as sc
from sparsecast import api
from sparsecast.errors import DisturbedError
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.matrices.problem import Problem
from sparsecast.records import Conditions

SMALL = "gallery:poisson2d?n=30"


@pytest.fixture
def disturbed(recorded):
    """Return what makes this machine's profile, whose products waited for cores in a share of the cases."""

    def made(share):
        records = tuple(
            dataclasses.replace(r, conditions=Conditions(2.0, 0.0, waited_for_cores=k % 10 < 10 * share))
            for k, r in enumerate(recorded.records)
        )
        profile = Profile(detect(), records, recorded.matrices)
        profile.save()
        return profile

    return made


def test_a_command_refuses_and_goes_on_when_told_to(run, disturbed):
    disturbed(0.9)
    asked = "predict", SMALL, "--threads", "1", "--model", "linear", "--json"
    refused = run(*asked)
    assert (refused.status, refused.out) == (2, "") and "no basis for a forecast" in refused.err
    done = run(*asked, "--anyway")
    assert done.status == 0 and json.loads(done.out)["forecasts"]
    assert any("no basis for a forecast" in note for note in json.loads(done.out)["notes"])


@pytest.mark.parametrize(
    "command", (("plan", SMALL), ("cost", "cg", SMALL, "--iterations", "9"), ("compare", SMALL))
)
def test_every_command_that_forecasts_refuses(run, disturbed, command):
    profile = disturbed(0.9)
    if command[0] == "compare":
        command = (*command, "--machines", profile.name)
    else:
        command = (*command, "--threads", "1", "--forecast-only")
    done = run(*command)
    assert done.status == 2 and "no basis for a forecast" in done.err


def test_ranks_of_a_disturbed_machine_refuse_as_its_processor_does(disturbed):
    A, points = sc.gallery("poisson2d", n=30), find_profile("xeon-gold-6154-edr").microbenchmarks
    profile = dataclasses.replace(disturbed(0.9), microbenchmarks=points)
    with pytest.raises(DisturbedError):
        sc.where(A, [profile], threads=1)
    rows = sc.where(A, [profile], threads=1, anyway=True).placements
    assert {row.ranks is None for row in rows} == {True, False}


def test_a_milder_disturbance_is_a_warning(disturbed):
    A, profile = sc.gallery("poisson2d", n=30), disturbed(0.4)
    for found in (sc.predict(A, profile, threads=1), sc.plan(A, profile, threads=1, probe_s=0)):
        assert any("2.0 other processes ran" in note for note in found.notes)


def test_what_measures_goes_on(disturbed):
    A, profile = sc.gallery("poisson2d", n=30), disturbed(0.9)
    with pytest.raises(DisturbedError):
        sc.predict(sc.structure(A), profile, threads=1)
    assert sc.session(threads=1).forecasts_at_hand(A) is None
    assert (
        "no basis for a forecast"
        in api.matrix_report(sc.session(profile, threads=1), Problem.of(A)).prediction.notes[0]
    )
