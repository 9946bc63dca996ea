"""A complaint about an option names the value that was given for it."""

import pytest

from sparsecast.cli.main import _with_value

COMPLAINT = "Invalid value for '--budget': Input should be a valid number"


@pytest.mark.parametrize("arguments", (["calibrate", "--budget", "x"], ["calibrate", "--budget=x", "--json"]))
def test_the_value_stands_beside_its_option(arguments):
    assert _with_value(COMPLAINT, ["sparsecast", *arguments]) == "--budget x: Input should be a valid number"


@pytest.mark.parametrize("message", ("No such option: --speed", "Missing argument 'MATRIX'.", ""))
def test_other_complaints_stay_as_they_are(message):
    assert _with_value(message, ["sparsecast", "predict", "--speed", "9"]) == message


def test_a_value_that_was_not_typed_is_not_made_up():
    assert _with_value(COMPLAINT, ["sparsecast", "calibrate"]) == COMPLAINT
