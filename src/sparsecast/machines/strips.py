"""Strips: the rows, or non-zeros for COO, that a device handles in one full load of thread blocks.

Two papers count them, and differ in CSR, because their kernels do:

- P. Guo, L. Wang, P. Chen (2014), section 3.1 and table 2: CSR with a warp a row, ELL with a thread a row,
  COO with a thread a non-zero; for AMD with compute units, wavefronts and work-items in their places.
- R. Wang, T. Gu, M. Li (2017), section 3.1, equations 1 to 3: CSR-vector with half a warp a row, CSR-scalar,
  ELL and JAD with a thread a row.
"""

from __future__ import annotations

from sparsecast.errors import UnknownNameError
from sparsecast.machines.gpu import GPU
from sparsecast.machines.machine import Machine

#: Rows (CSR, ELL) and non-zeros (COO) of a strip for each thread of a processor. A processor has no thread
#: blocks to fill. Its threads need enough work that waking them costs little: with 1,024 rows of four
#: non-zeros a thread works for about 2 microseconds, about as long as the waking takes.
STRIP_ROWS_A_THREAD = 1024


def strip_rows(machine: Machine | None, threads: int, kernel: str = "csr") -> int:
    """Return the rows, or non-zeros for COO, of a strip of a machine (Guo et al., section 3.1: S).

    Parameters
    ----------
    machine : Machine or None
        Without one, a processor.
    threads : int
        Of the processor.
    kernel : str
        As in `guo_strip`; it makes no difference on a processor.
    """
    if machine and machine.gpu:
        return guo_strip(machine.gpu, kernel)
    return threads * STRIP_ROWS_A_THREAD


def guo_strip(gpu: GPU, kernel: str) -> int:
    """Return the rows of a strip of Guo et al. (2014), section 3.1: S.

    `kernel` is ``"csr"``, ``"ell"`` or ``"coo"``, of which S counts non-zeros. HYB has no strip of its own,
    being ELL and COO (section 3.5.4): an UnknownNameError.
    """
    return _strip(gpu, {"csr": gpu.lanes, "ell": 1, "coo": 1}, kernel)


def wang_strip(gpu: GPU, kernel: str) -> int:
    """Return the rows of a strip of Wang et al. (2017), equations 1 to 3: S.

    `kernel` is ``"csr-vector"``, ``"csr-scalar"``, ``"ell"`` or ``"jad"``; else an UnknownNameError.
    """
    return _strip(gpu, {"csr-vector": gpu.lanes // 2, "csr-scalar": 1, "ell": 1, "jad": 1}, kernel)


def _strip(gpu: GPU, threads: dict[str, int], kernel: str) -> int:
    """Return how often the threads of a row, by kernel, go into those that the device holds at once."""
    if kernel not in threads:
        raise UnknownNameError(
            f"strip of kernel '{kernel}' is unknown: known are {', '.join(threads)}; name one"
        )
    return gpu.multiprocessors * (gpu.threads_per_multiprocessor // threads[kernel])
