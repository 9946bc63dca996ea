"""Meters of the processors of a machine, one file each; those of a GPU are with its device."""

from __future__ import annotations

from sparsecast.errors import MeterError
from sparsecast.measuring.energy import ProcessorMeter
from sparsecast.system.registry import Registry

#: The meters by name. A plug-in adds one by an entry point of the group ``sparsecast.measuring.meters``.
METERS: Registry[type[ProcessorMeter]] = Registry("meter", "sparsecast.measuring.meters")


def processor_meter() -> ProcessorMeter | None:
    """Return the first readable meter in their order, None without any; a MeterError if none is readable."""
    refusal: MeterError | None = None
    for meter in sorted(map(METERS.get, METERS.names()), key=lambda meter: meter.order):
        if not meter.is_modelled and meter.is_present():
            try:
                return meter()
            except MeterError as error:
                refusal = refusal or error
    if refusal is not None:
        raise refusal
    return None
