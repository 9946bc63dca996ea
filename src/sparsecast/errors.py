"""Every exception that Sparsecast raises on purpose.

A message is one line: the value, what was expected, the remedy.
"""

from __future__ import annotations

from collections.abc import Iterable


class SparsecastError(Exception):
    """Anything below: the command line prints it as one line and ends with exit status 1."""

    def __init__(self, message: str = "") -> None:
        # Some of it may come from a file, or from another library.
        super().__init__(" ".join(message.splitlines()))


class InputError(SparsecastError, ValueError):
    """The user's input was wrong: exit status 2."""


class MatrixFileError(InputError):
    """A matrix file is missing, damaged, too large, or of a kind that is not taken."""


class UnknownNameError(InputError):
    """A name that no registry knows; the message lists the known ones."""


class FeatureError(InputError):
    """A structure lacks features that a question needs, and they cannot be computed."""


class FormatError(InputError):
    """A format does not suit a matrix."""


class PaddingError(FormatError):
    """A format would store many times the non-zeros of the matrix."""


class SymmetryError(FormatError):
    """A format for symmetric matrices was asked to hold one that is not."""


class MatrixSizeError(InputError):
    """A matrix, or a matrix in some format, does not fit in the memory at hand."""


class ProfileError(InputError):
    """A profile is missing, damaged, of another schema version, or of another machine."""


class DisturbedError(InputError):
    """A calibration was disturbed so much that it is no basis for a forecast."""


class DeviceError(InputError):
    """A device cannot be found, is too old, was lost, or lacks its driver or Python package."""


class MeterError(InputError):
    """No meter of energy can be read: there is none, or it is not permitted, or prints no number."""


class PluginError(InputError):
    """An installed plug-in has a name that is taken, cannot be imported, or does not register its member."""


class BusyError(InputError):
    """Another process is calibrating this machine."""


class MissingLibraryError(InputError):
    """Another library that products are asked of is not installed, or cannot be loaded."""


class MpiError(InputError):
    """mpi4py or an MPI library is missing, or the processes were started by the mpirun of another one."""


class RanksError(InputError):
    """What all ranks found together, so that each of them raises it: one of them need say so."""


class StorageError(InputError):
    """The folder that keeps profiles and journals cannot be written."""


class WrongResultError(SparsecastError):
    """A kernel's result differs from the reference result by more than rounding explains."""


def reason_of(error: Exception) -> str:
    """Return why something is left out where a program goes on; a fault of ours is shown with its trace."""
    if isinstance(error, InputError):
        return str(error)
    import traceback  # only for a fault

    traceback.print_exception(error)
    return f"this is a fault of Sparsecast, {error!r}: please report it with its trace"


def remedy_for(name: str, known: Iterable[str], otherwise: str, likeness: float = 0.6) -> str:
    """Return ``"did you mean 'csr'?"`` if a name is near one of those known, else the other remedy.

    `likeness` says how near it must be, from 0 to 1: the ratio of `difflib.SequenceMatcher`.
    """
    import difflib  # only for a wrong name: importing Sparsecast stays light

    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=likeness)
    return f"did you mean '{by_lower[near[0]]}'?" if near else otherwise
