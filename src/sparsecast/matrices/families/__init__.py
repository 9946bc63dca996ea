"""Families of matrices, built from a specification such as ``varied?rows=1000&mean_length=4&...``.

The same specification always gives the same matrix, so new features can be computed for matrices that were
measured earlier. A family is one file here, or a member of a paper. A last parameter `VALUES` of any
family gives its matrix other values: ``values=one`` or ``values=float32``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.system.registry import Registry

Value = int | float | str


@dataclass(frozen=True, slots=True)
class Family:
    """How the matrices of a family are built."""

    build: Callable[..., csr_array[Any]]  # returns the matrix of given parameters
    entries: Callable[..., int]  # returns the approximate number of its entries, from the same parameters
    #: If true, a calibration measures only formats that name the family in their `benchmark_kinds`.
    for_some_formats: bool = False

    @property
    def parameters(self) -> tuple[str, ...]:
        """Those without a default, in order."""
        signature = inspect.signature(self.entries).parameters.values()
        return tuple(parameter.name for parameter in signature if parameter.default is parameter.empty)


#: The parameter of every family that says what replaces its values, and by what: ones, or the nearest values
#: of float32. They can be kept in fewer bytes.
VALUES = "values"
REPLACED: Mapping[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "one": np.ones_like,
    "float32": lambda values: values.astype(np.float32).astype(values.dtype),
}

#: Every family, by name.
FAMILIES: Registry[Family] = Registry("family of matrices", "sparsecast.matrices.families", separator=" ")


def specification(family: str, **parameters: Value) -> str:
    """Return the specification of a matrix, with its parameters in order."""
    shown = (
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in parameters.items()
    )
    return f"{family}?{'&'.join(shown)}"


def parse_specification(text: str) -> tuple[str, dict[str, Value]]:
    """Return the family and the parameters of a specification."""
    family, texts = split_specification(text, "value", "strips?rows=1000&nnz_per_row=4")
    return family, {key: _value(unquote(value)) for key, value in texts.items()}


def split_specification(text: str, kind: str, example: str) -> tuple[str, dict[str, str]]:
    """Return the name and the parameters, as texts; the message asks for `kind` and shows an `example`."""
    name, question, query = text.partition("?")
    parameters: dict[str, str] = {}
    for pair in query.split("&") if question else ():
        key, equals, value = pair.partition("=")
        if not equals or not key or key in parameters:
            raise InputError(
                f"specification '{text}': expected each parameter once as name={kind}, found '{pair}'; write "
                f"for example '{example}'"
            )
        parameters[key] = value
    return name, parameters


def _value(text: str) -> Value:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def built(family: str, parameters: Mapping[str, Any]) -> csr_array[Any]:
    """Return the matrix of a family."""
    matrix: csr_array[Any] = _called(FAMILIES.get(family).build, family, parameters)
    if VALUES in parameters:
        replaced = REPLACED.get(str(parameters[VALUES]))
        if replaced is None:
            raise InputError(
                f"specification '{specification(family, **parameters)}': expected the values "
                f"{' or '.join(REPLACED)}; correct it, or leave them out"
            )
        matrix.data = replaced(matrix.data)
    return matrix


def expected_entries(family: str, parameters: Mapping[str, Any]) -> int:
    """Return the approximate number of entries of the matrix that `built` returns."""
    return int(_called(FAMILIES.get(family).entries, family, parameters))


def _called(function: Callable[..., Any], family: str, parameters: Mapping[str, Any]) -> Any:
    try:
        return function(**{name: value for name, value in parameters.items() if name != VALUES})
    except InputError:
        raise
    except (TypeError, ValueError, IndexError) as error:
        raise InputError(
            f"specification '{specification(family, **parameters)}': expected other parameters ({error}); "
            f"correct them"
        ) from error
