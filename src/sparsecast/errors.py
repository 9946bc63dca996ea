"""Every exception that Sparsecast raises on purpose.

The tree::

    SparsecastError                 anything below; the command line prints it as one line
    |-- InputError (ValueError)     the user's input was wrong: exit status 2
    |   |-- MatrixFileError         a matrix file is missing, damaged, too large or of a kind not taken
    |   |-- UnknownNameError        no gallery matrix, format, kernel or model has that name
    |   |-- FeatureError            a matrix's structure lacks features that are needed
    |   |-- FormatError             a format does not suit a matrix
    |   |   |-- PaddingError        it would store far more than the matrix has
    |   |   `-- SymmetryError       it holds one triangle, and the matrix is not symmetric
    |   |-- MatrixSizeError         a matrix or its format does not fit in memory
    |   |-- ProfileError            a profile is missing, damaged, or of another schema or machine
    |   |-- DeviceError             a device, its driver or package is missing or too old, or it was lost
    |   |-- PluginError             a plug-in takes a name that is taken, or cannot be imported
    |   |-- BusyError               another calibration holds the machine's profile
    |   `-- StorageError            the data folder cannot be written
    `-- WrongResultError            a kernel disagreed with the oracle: our fault, exit status 1

A message is one line: the value, what was expected, the remedy.
"""

from __future__ import annotations


class SparsecastError(Exception):
    """Anything that Sparsecast raises on purpose."""


class InputError(SparsecastError, ValueError):
    """The caller's input was wrong; the message names the value, the expectation and the remedy."""


class MatrixFileError(InputError):
    """A matrix file is missing, damaged, too large, or of a kind that is not taken."""


class UnknownNameError(InputError):
    """A name that no registry knows; the message lists the known ones."""


class FeatureError(InputError):
    """A structure lacks features that a question needs, and nobody can compute them."""


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


class DeviceError(InputError):
    """A device cannot be found, is too old, was lost, or lacks its driver or Python package."""


class PluginError(InputError):
    """An installed plug-in has a name that is taken, cannot be imported, or does not register its member."""


class BusyError(InputError):
    """Another process is calibrating this machine."""


class StorageError(InputError):
    """The folder that keeps profiles and journals cannot be written."""


class WrongResultError(SparsecastError):
    """A kernel's result differs from the oracle's by more than rounding explains."""
