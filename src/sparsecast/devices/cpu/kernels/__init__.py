"""Numba kernels for processors, one file a format; and those of other libraries, found by name."""

from __future__ import annotations

from functools import cache

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.formats.libraries import library_called
from sparsecast.system.registry import Registry


@cache
def _of_library(name: str) -> FormatKernels | None:
    """Return the kernel of a library, None if there is none of that name."""
    library = library_called(name)
    if library is None:
        return None
    return FormatKernels(
        (library.kernel,),
        only_variant,
        lambda matrix, variant, threads: matrix.on_threads(threads),
        reads_narrow=bool(library.narrow_parameters),
        version=library.kernel_version(),
    )


#: The kernels of every format, by its name; those of libraries are found by name, too, and not listed.
KERNELS: Registry[FormatKernels] = Registry(
    "CPU kernel for format", "sparsecast.devices.cpu.kernels", unlisted=_of_library
)
