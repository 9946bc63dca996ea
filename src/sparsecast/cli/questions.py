"""Finding the profile that answers a question, with a calibration first where none does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sparsecast.cli.options import screen

if TYPE_CHECKING:
    from sparsecast.machines.profile import Profile


def profile_for(
    A: Any, wanted: str | None, threads: int | None, dtype: str | None, device: str | None
) -> Profile:
    """Return the wanted profile, or this machine's, calibrated quickly first where it has not been met."""
    from sparsecast import api
    from sparsecast.reports.progress import timed_bar

    if wanted is not None:
        return api.profile(wanted)
    console = screen()

    def notify(message: str) -> None:
        console.print(message, soft_wrap=True)

    with timed_bar(console, "calibrating") as on_progress:
        return api.own_profile(
            A, threads=threads, dtype=dtype, device=device or "cpu", notify=notify, on_progress=on_progress
        )


def profiles_for(
    A: Any, wanted: str | None, threads: int | None, dtype: str | None, devices: Sequence[str]
) -> list[Profile]:
    """Return the wanted profile, and this machine's for each of several devices that it is not of."""
    from sparsecast import api
    from sparsecast.machines.device import parse_device

    if len(devices) == 1:
        return [profile_for(A, wanted, threads, dtype, devices[0])]
    found = [] if wanted is None else [api.profile(wanted)]
    given = {api.kind(profile.machine) for profile in found}
    kinds = {device: parse_device(device)[0] for device in devices}
    own = [device for device in kinds if kinds[device] not in given]
    for device in own:
        api.machine_of(device)  # one that is not there is refused before the others are met
    for device in own:
        count = threads if kinds[device] == "cpu" else None
        found.append(profile_for(A, None, count, dtype, device))
    return found
