"""Strips: the rows, or non-zeros for COO, that a device handles in one full load of thread blocks.

Two papers count them, and differ for CSR, as their kernels do. P. Guo, L. Wang, P. Chen (2014), section 3.1
and table 2, have CSR with a warp per row, ELL with a thread per row, COO with a thread per non-zero; for AMD
with compute units, wavefronts and work-items instead. R. Wang, T. Gu, M. Li (2017), section 3.1, equations 1
to 3, have CSR-vector with half a warp per row, and CSR-scalar, ELL and JAD with a thread per row.
"""

from __future__ import annotations

from sparsecast.errors import UnknownNameError
from sparsecast.machines.gpu import GPU
from sparsecast.machines.machine import Machine

#: Rows (CSR, ELL) and non-zeros (COO) of a strip for each thread of a processor. A processor has no thread
#: blocks to fill. Its threads need enough work that waking them costs little: 1,024 rows of four non-zeros
#: take about 2 microseconds, about as long as the waking.
STRIP_ROWS_A_THREAD = 1024


def strip_rows(machine: Machine | None, threads: int, kernel: str = "csr") -> int:
    """Return the rows, or non-zeros for COO, of a strip of a machine (Guo et al., section 3.1: S).

    Without a machine, or without a GPU, it is a processor with `threads` threads, and `kernel` makes no
    difference; otherwise it is as in `guo_strip`.
    """
    if machine and machine.gpu:
        return guo_strip(machine.gpu, kernel)
    return threads * STRIP_ROWS_A_THREAD


def guo_strip(gpu: GPU, kernel: str) -> int:
    """Return the rows of a strip of Guo et al. (2014), section 3.1: S.

    `kernel` is ``"csr"``, ``"ell"`` or ``"coo"``, whose S counts non-zeros. HYB has no strip of its own,
    since it is ELL and COO (section 3.5.4): an UnknownNameError.
    """
    return _strip(gpu, {"csr": gpu.lanes, "ell": 1, "coo": 1}, kernel)


def wang_strip(gpu: GPU, kernel: str) -> int:
    """Return the rows of a strip of Wang et al. (2017), equations 1 to 3: S.

    `kernel` is ``"csr-vector"``, ``"csr-scalar"``, ``"ell"`` or ``"jad"``; else an UnknownNameError.
    """
    return _strip(gpu, {"csr-vector": gpu.lanes // 2, "csr-scalar": 1, "ell": 1, "jad": 1}, kernel)


def _strip(gpu: GPU, threads: dict[str, int], kernel: str) -> int:
    """Return how many rows fit in the threads that the device holds at once, by kernel."""
    if kernel not in threads:
        raise UnknownNameError(
            f"strip of kernel '{kernel}' is unknown: known are {', '.join(threads)}; name one"
        )
    return gpu.multiprocessors * (gpu.threads_per_multiprocessor // threads[kernel])
