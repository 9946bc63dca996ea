"""Devices: a folder or a module for each, and shared modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsecast.system.registry import Registry

if TYPE_CHECKING:
    from sparsecast.devices.device import Device

#: The devices that compute products, by the name that people call them.
DEVICES: Registry[Device] = Registry(
    "device",
    "sparsecast.devices",
    helpers=(
        "binding",
        "compiling",
        "device",
        "gpu",
        "product_timer",
        "target",
    ),
)
