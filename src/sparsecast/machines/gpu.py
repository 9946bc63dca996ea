"""Description of a GPU: of NVIDIA in multiprocessors and warps, of AMD in compute units and wavefronts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GPU:
    """Description of a GPU."""

    name: str
    multiprocessors: int  # streaming multiprocessors (NVIDIA) or compute units (AMD)
    warps_per_multiprocessor: int  # warps, or wavefronts, that a multiprocessor holds at once
    lanes: int  # threads of a warp: 32, or 64 of a wavefront
    threads_per_block: int  # the greatest number
    #: memory_bytes, l2_bytes: device memory and second-level cache.
    memory_bytes: int
    l2_bytes: int
    #: clock_hz, memory_clock_hz: the highest clocks.
    clock_hz: int
    memory_clock_hz: int
    compute_capability: tuple[int, int] | None = None  # of CUDA; None for other devices

    @property
    def threads_per_multiprocessor(self) -> int:
        """Threads, or work-items, that a multiprocessor holds at once."""
        return self.warps_per_multiprocessor * self.lanes
