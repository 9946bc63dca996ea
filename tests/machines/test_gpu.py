"""The description of a GPU, and of a machine with one."""

import dataclasses
import json

import pytest

from sparsecast.machines.machine import Machine, detect
from sparsecast.machines.profile import Profile

from ..conftest import H200

MI100 = dataclasses.replace(
    H200, name="AMD Instinct MI100", multiprocessors=120, warps_per_multiprocessor=40, compute_capability=None
)


@pytest.mark.parametrize("device", (H200, MI100), ids=lambda device: device.name)
def test_a_machine_carries_its_device_through_a_profile(device, tmp_path):
    machine = dataclasses.replace(detect(), device="cuda" if device is H200 else "hip", gpu=device)
    assert Machine.from_dict(json.loads(json.dumps(machine.to_dict()))) == machine
    path = Profile(machine, ()).save(tmp_path / "with-device.parquet")
    assert Profile.load(path).machine == machine


def test_the_name_is_that_of_the_device_and_changes_with_what_sets_its_speed():
    machine = dataclasses.replace(detect(), device="cuda", gpu=H200)
    assert machine.name.startswith("nvidia-h200-")
    others = [
        dataclasses.replace(H200, multiprocessors=114),
        dataclasses.replace(H200, memory_clock_hz=2_600_000_000),
        dataclasses.replace(H200, l2_bytes=50 << 20),
        MI100,
    ]
    names = {dataclasses.replace(machine, gpu=gpu).name for gpu in (H200, *others)}
    assert len(names) == 5
    larger = dataclasses.replace(H200, memory_bytes=141 << 30)
    assert dataclasses.replace(machine, gpu=larger).name == machine.name
