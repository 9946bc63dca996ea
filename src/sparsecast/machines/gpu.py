"""Description of a GPU: of NVIDIA in multiprocessors and warps, of AMD in compute units and wavefronts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GPU:
    """Description of a GPU.

    Attributes
    ----------
    multiprocessors : int
        Streaming multiprocessors (NVIDIA) or compute units (AMD).
    warps_per_multiprocessor : int
        Warps, or wavefronts, that a multiprocessor holds at once.
    lanes : int
        Threads of a warp: 32, or 64 of a wavefront.
    threads_per_block : int
        The greatest number.
    memory_bytes, l2_bytes : int
        Device memory and second-level cache.
    clock_hz, memory_clock_hz : int
        The highest clocks.
    compute_capability : (int, int) or None
        Of CUDA; None for other devices.
    """

    name: str
    multiprocessors: int
    warps_per_multiprocessor: int
    lanes: int
    threads_per_block: int
    memory_bytes: int
    l2_bytes: int
    clock_hz: int
    memory_clock_hz: int
    compute_capability: tuple[int, int] | None = None

    @property
    def threads_per_multiprocessor(self) -> int:
        """Threads, or work-items, that a multiprocessor holds at once."""
        return self.warps_per_multiprocessor * self.lanes
