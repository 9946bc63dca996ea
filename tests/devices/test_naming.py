"""Names of devices as people give them."""

import pytest

from sparsecast.devices import parse_device
from sparsecast.errors import InputError

NAMED = {"cpu": ("cpu", 0), "cuda": ("cuda", 0), "cuda:0": ("cuda", 0), "cuda:17": ("cuda", 17)}


@pytest.mark.parametrize("text", NAMED)
def test_devices_are_named_by_kind_and_number(text):
    assert parse_device(text) == NAMED[text]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpu",
        "CUDA",
        "cuda:",
        "cuda:-1",
        "cuda:1.0",
        "cuda:1\n",
        "cuda1",
        "cpu:0",
        "cuda:\u0661",
        "cpu,cuda",
    ],
)
def test_other_names_of_devices_are_refused_in_one_line(text):
    with pytest.raises(InputError) as refusal:
        parse_device(text)
    assert str(refusal.value).startswith(f"device {text!r}: ")
