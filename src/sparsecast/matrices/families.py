"""Families of matrices that are made from a specification, such as ``varied?rows=1000&mean_length=4&...``.

The same specification gives the same matrix everywhere and always, so features that did not exist when a
matrix was measured can be computed for it later.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote

from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.atlas import atlas_entries, atlas_matrix
from sparsecast.matrices.banded_synthesis import banded_matrix
from sparsecast.matrices.synthesis import (
    block_matrix,
    diagonal_matrix,
    mirrored,
    strip_matrix,
    varied_matrix,
)

Value = int | float | str

#: Shares of ten bands in a matrix whose columns are uniform: distance d has 1 - d of the places.
_UNIFORM_BANDS = tuple((1 - k / 10) ** 2 - (0.9 - k / 10) ** 2 for k in range(10))


@dataclass(frozen=True, slots=True)
class Family:
    """How the matrices of a family are made, and about how many entries they have, both from parameters."""

    build: Callable[..., csr_array[Any]]
    entries: Callable[..., int]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters, in their order."""
        return tuple(inspect.signature(self.entries).parameters)


def _symmetric(rows: int, mean_length: int, lengths: str, reach: float) -> csr_array[Any]:
    return mirrored(varied_matrix(rows, mean_length, lengths, reach, seed=0))


def _row_lengths(rows: int, mean_length: int, lengths: str) -> csr_array[Any]:
    return banded_matrix(rows, mean_length, bands=_UNIFORM_BANDS, lengths=lengths, seed=0)


def _synthetic(rows: int, nnz_per_row: int, kind: str) -> csr_array[Any]:
    block = (1, 1) if kind == "symmetric" else (int(kind[0]), int(kind[2]))
    return banded_matrix(
        rows, nnz_per_row, block=block, symmetric=kind == "symmetric", seed=rows + nnz_per_row
    )


def _varied_entries(rows: int, mean_length: int, lengths: str, reach: float) -> int:
    return rows * mean_length


def _blocks_entries(block_rows: int, blocks_per_row: int, block: int, reach: float) -> int:
    return block_rows * blocks_per_row * block**2


#: The families by name: the benchmark matrices of Guo et al. (2014), matrices with rows of varied length, the
#: same mirrored, dense blocks, full diagonals, those of Wang et al. (2017) and of Gahvari et al. (2007), and
#: twins of real matrices.
FAMILIES: dict[str, Family] = {
    "strips": Family(partial(strip_matrix, seed=0), lambda rows, nnz_per_row: rows * nnz_per_row),
    "varied": Family(partial(varied_matrix, seed=0), _varied_entries),
    "symmetric": Family(_symmetric, _varied_entries),
    "blocks": Family(partial(block_matrix, seed=0), _blocks_entries),
    "diagonals": Family(partial(diagonal_matrix, seed=0), lambda rows, diagonals, reach: rows * diagonals),
    "row lengths": Family(_row_lengths, lambda rows, mean_length, lengths: rows * mean_length),
    "synthetic": Family(_synthetic, lambda rows, nnz_per_row, kind: rows * nnz_per_row),
    "atlas": Family(atlas_matrix, atlas_entries),
}


def specification(family: str, **parameters: Value) -> str:
    """Return the specification of a matrix of a family, with its parameters in their order."""
    shown = (
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in parameters.items()
    )
    return f"{family}?{'&'.join(shown)}"


def parse_specification(text: str) -> tuple[str, dict[str, Value]]:
    """Return the family and the parameters of a specification.

    Raises
    ------
    InputError
        If it is not of the form ``NAME?key=value&key=value``.
    """
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
    """Return the matrix of a family; InputError if the family does not take such parameters."""
    matrix: csr_array[Any] = _called(FAMILIES[family].build, family, parameters)
    return matrix


def expected_entries(family: str, parameters: Mapping[str, Any]) -> int:
    """Return about the number of entries of the matrix that `built` makes, without making it."""
    return int(_called(FAMILIES[family].entries, family, parameters))


def _called(function: Callable[..., Any], family: str, parameters: Mapping[str, Any]) -> Any:
    try:
        return function(**parameters)
    except InputError:
        raise
    except (TypeError, ValueError, IndexError) as error:
        raise InputError(
            f"specification '{specification(family, **parameters)}': expected other parameters ({error}); "
            f"correct them"
        ) from error
