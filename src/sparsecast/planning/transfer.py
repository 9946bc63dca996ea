"""The cost of a copy between host and device: a latency, and the bytes over the bandwidth."""

from __future__ import annotations

import numpy as np

from sparsecast.errors import ProfileError
from sparsecast.machines.profile import Profile
from sparsecast.models.fitting import fitted_costs


def transfer_s(profile: Profile, size_bytes: int, direction: str) -> float:
    """Return the forecast seconds of one copy of a NumPy array, pageable as users have it.

    Latency and bandwidth, neither below 0, are those for which the squares of the relative errors on the
    profile's Bandwidths are least, so that small copies count as much as large ones.

    Parameters
    ----------
    profile : Profile
        Of the device.
    size_bytes : int
    direction : str
        ``"to device"`` or ``"from device"``.

    Raises
    ------
    ProfileError
        Without Bandwidths of that kind with two numbers of bytes.
    """
    own = [stream for stream in profile.bandwidths if stream.kind == direction]
    if len({stream.bytes for stream in own}) < 2:
        raise ProfileError(
            f"profile {profile.name} cannot forecast copies {direction}: expected bandwidths of at least two "
            f"sizes, it has {len(own)}; calibrate the device, or use another profile"
        )
    counts = np.array([(1.0, float(stream.bytes)) for stream in own])
    latency_s, s_per_byte = fitted_costs(counts, np.array([stream.time_s for stream in own]))
    return float(latency_s + size_bytes * s_per_byte)
