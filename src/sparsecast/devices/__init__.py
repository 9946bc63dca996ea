"""Devices: a folder or a module for each, and shared modules.

Users write a device as a name of DEVICES with an optional number, and threads as a number or "auto".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparsecast.errors import InputError, remedy_for
from sparsecast.machines.machine import Machine
from sparsecast.system.registry import Registry

if TYPE_CHECKING:
    from sparsecast.devices.device import Device

#: The devices that compute products, by the name that people call them.
DEVICES: Registry[Device] = Registry(
    "device",
    "sparsecast.devices",
    helpers=("binding", "compiling", "device", "gpu", "product_timer", "target"),
)

#: The best number of threads of those that a profile has Records of.
AUTO = "auto"

#: A number, AUTO, or None for all of the machine's.
Threads = int | str | None


def number_of(threads: Threads) -> int | None:
    """Return the number of threads that are asked for; for AUTO None, as for all of them."""
    if isinstance(threads, str) and threads != AUTO:
        raise InputError(f"threads '{threads}': expected a number, or {AUTO}; name one of them")
    return None if isinstance(threads, str) else threads


def parse_device(text: str) -> tuple[str, int]:
    """Return the name and the number of a device: ``("cuda", 1)`` for ``"cuda:1"``, by default number 0."""
    name, colon, number = text.partition(":")
    names = DEVICES.names()
    if name in names:
        is_numbered = DEVICES.get(name).is_numbered
        if not colon:
            return name, 0
        if is_numbered and re.fullmatch(r"[0-9]{1,4}", number):
            return name, int(number)
    numbered = [f"{name}:N for number N" for name in names if DEVICES.get(name).is_numbered]
    remedy = remedy_for(name, names, "name one of them")
    raise InputError(
        f"device {text!r}: expected {', '.join(names)}, or {', '.join(numbered)}; "
        f"{'compare several places by --where' if ',' in text else remedy}"
    )


def threads_text(device: str, threads: int) -> str:
    """Return the threads of a device in words; empty for a device that is not installed."""
    return DEVICES.get(device).threads_text(threads) if device in DEVICES else ""


def threads_of(device: str, threads: Threads) -> Threads:
    """Return the threads of a question for a device: None for a GPU."""
    return threads if DEVICES.get(parse_device(device)[0]).shares_host else None


def machine_of(device: str) -> Machine:
    """Return this machine with a device such as ``"cuda:1"``, and compute on that from now on."""
    name, index = parse_device(device)
    return DEVICES.get(name).describe(index)
