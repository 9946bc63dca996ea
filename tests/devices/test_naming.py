"""Names of devices as people give them."""

import pytest

from sparsecast.devices import parse_device
from sparsecast.errors import InputError

NAMED = {"cpu": ("cpu", 0), "cuda": ("cuda", 0), "cuda:0": ("cuda", 0), "cuda:17": ("cuda", 17)}
NUMBERS = ("", "-1", "1.0", "1\n", "\u0661")
REFUSED = ("", "gpu", "CUDA", "cuda1", "cpu:0", "cpu,cuda", *(f"cuda:{number}" for number in NUMBERS))


@pytest.mark.parametrize("text", (*NAMED, *REFUSED))
def test_devices_are_named_by_kind_and_number(text):
    if text in NAMED:
        assert parse_device(text) == NAMED[text]
        return
    with pytest.raises(InputError) as refusal:
        parse_device(text)
    assert str(refusal.value).startswith(f"device {text!r}: ")
