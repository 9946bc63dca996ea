"""Other libraries as storage formats with one kernel each: one file a library, under its name.

They are candidates where they are asked for, and nowhere else: `FORMATS` and the kernels of the processor
find them by name, and do not list them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsecast.errors import InputError
from sparsecast.system.registry import Registry

if TYPE_CHECKING:
    from sparsecast.formats.libraries.library import Library

#: Every library that can be asked for a product, installed or not.
LIBRARIES: Registry[type[Library]] = Registry("library", "sparsecast.formats.libraries", helpers=("library",))

#: What stands for all libraries.
ANY = "any"

#: The device that they compute on.
DEVICE = "cpu"


def library_called(name: str) -> type[Library] | None:
    """Return the library of a name, None if there is none."""
    return LIBRARIES.get(name) if name in LIBRARIES else None


def chosen_libraries(asked: str | None, device: str = DEVICE, *, is_here: bool = True) -> tuple[str, ...]:
    """Return the names of libraries that are asked for, such as ``"mkl,scipy"``, or ``"any"``.

    With `is_here`, products are done on this machine: any is what is installed then, and each must be, else a
    MissingLibraryError is raised; an UnknownNameError where there is none of a name, an InputError where they
    do not compute on the device.
    """
    if asked is None:
        return ()
    if device != DEVICE:
        raise InputError(
            f"library '{asked}' on {device}: expected {DEVICE}, where they compute; leave it out"
        )
    if asked == ANY:
        known = LIBRARIES.names()
        return tuple(name for name in known if not is_here or LIBRARIES.get(name).version() is not None)
    names = tuple(dict.fromkeys(name.strip() for name in asked.split(",")))
    LIBRARIES.require(names)
    for name in names if is_here else ():
        LIBRARIES.get(name).refuse_missing()
    return names
