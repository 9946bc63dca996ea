"""Names of devices as users write them: a name of DEVICES, and perhaps a number."""

from __future__ import annotations

import re

from sparsecast.devices import DEVICES
from sparsecast.errors import InputError, remedy_for
from sparsecast.machines.machine import Machine


def parse_device(text: str) -> tuple[str, int]:
    """Return the name and the number of a device: of ``"cuda:1"``, ``("cuda", 1)``.

    A name without a number is number 0. Whether the device is there, `Device.describe` tells.
    """
    name, colon, number = text.partition(":")
    known = DEVICES.names()
    if name in known:
        is_numbered = DEVICES.get(name).is_numbered
        if not colon:
            return name, 0
        if is_numbered and re.fullmatch(r"[0-9]{1,4}", number):
            return name, int(number)
    numbered = [f"{name}:N for number N" for name in known if DEVICES.get(name).is_numbered]
    raise InputError(
        f"device {text!r}: expected {', '.join(known)}, or {', '.join(numbered)}; "
        f"{remedy_for(name, known, 'name one of them')}"
    )


def threads_text(device: str, threads: int) -> str:
    """Return in words the threads of a device; nothing of one whose plug-in is not here any more."""
    return DEVICES.get(device).threads_text(threads) if device in DEVICES.names() else ""


def parse_devices(text: str) -> dict[str, str]:
    """Return the device of each name in a list: of ``"cpu,cuda:1"``, cpu and cuda by these names."""
    devices = {name: parse_device(name)[0] for name in text.split(",")}
    if len(set(devices.values())) < len(text.split(",")):
        raise InputError(
            f"devices {text!r}: expected one of each kind, as in cpu,cuda; ask about others apart"
        )
    return devices


def machine_of(device: str) -> Machine:
    """Return this machine with the device of a name such as ``"cuda:1"``, and compute on that from now on."""
    name, index = parse_device(device)
    return DEVICES.get(name).describe(index)
