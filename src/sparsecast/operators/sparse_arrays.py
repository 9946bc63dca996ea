"""SciPy's sparse arrays with products by an operator: for code that wants the matrix, its arrays too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: So many vectors at once at most read the matrix once; of more, SciPy's loop over them is as fast.
_MOST_VECTORS = 8

#: Attributes that hold the matrix itself.
_ARRAYS = ("data", "indices", "indptr")


def _in_place(name: str, is_done: str = "") -> Callable[..., None]:
    """Return SciPy's method that changes the arrays, on copies unless an attribute says that it is done."""

    def method(self: _PlannedProducts, *given: Any) -> None:
        for array in () if getattr(self, is_done, False) else _ARRAYS:
            setattr(self, array, getattr(self, array).copy())
        getattr(super(_PlannedProducts, self), name)(*given)

    return method


class _PlannedProducts:
    """What the class of a sparse array is mixed with.

    A copy, a slice or a sum has products of SciPy again. So has the array itself once another array replaces
    one of its own.
    """

    #: Returns what computes the product; None where SciPy does.
    _operator: Callable[[], Any] | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name in (*_ARRAYS, "_shape"):
            self.__dict__.pop("_operator", None)

    resize, eliminate_zeros = _in_place("resize"), _in_place("eliminate_zeros")
    sort_indices = _in_place("sort_indices", "has_sorted_indices")
    sum_duplicates = _in_place("sum_duplicates", "has_canonical_format")

    def __reduce__(self) -> Any:
        arrays = tuple(getattr(self, name) for name in _ARRAYS)
        return type(self).__mro__[2], (arrays, self.shape)  # type: ignore[attr-defined]

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        made, operator = super().transpose(axes, copy), self._operator  # type: ignore[misc]
        return made if copy or operator is None else with_operator(made, lambda: operator().T)

    def conjugate(self, copy: bool = True) -> Any:
        made, operator = super().conjugate(copy), self._operator  # type: ignore[misc]
        return made if operator is None else with_operator(made, lambda: operator().conjugate())

    conj = conjugate

    # SciPy's own hooks: a product with one vector and with several, after all checks.

    def _matmul_vector(self, other: NDArray[Any]) -> Any:
        if self._computes(other):
            return self._operator().matvec(other)  # type: ignore[misc]
        return super()._matmul_vector(other)  # type: ignore[misc]

    def _matmul_multivector(self, other: NDArray[Any]) -> Any:
        if self._computes(other) and other.shape[1] <= _MOST_VECTORS:
            return self._operator().matmat(other)  # type: ignore[misc]
        return super()._matmul_multivector(other)  # type: ignore[misc]

    def _computes(self, other: NDArray[Any]) -> bool:
        """Return whether the operator computes in the type in which SciPy would."""
        dtype = self.dtype  # type: ignore[attr-defined]
        return self._operator is not None and np.result_type(dtype, other.dtype) == dtype


def with_operator(A: Any, operator: Callable[[], Any]) -> Any:
    """Return a sparse array or matrix of the class and the arrays of `A`, with products by an operator.

    `operator` is called for the BlockOperator when a product is done. The arrays are shared, and cannot be
    written through the result: the operator would not follow.
    """
    kind: Any = type(A)
    planned: Any = object.__new__(_planned_class(kind))
    planned.__dict__.update(A.__dict__)
    for name in _ARRAYS:
        shared = getattr(A, name).view()
        shared.flags.writeable = False
        setattr(planned, name, shared)
    planned._operator = operator
    return planned


@functools.cache
def _planned_class(kind: type) -> type:
    if issubclass(kind, _PlannedProducts):
        return kind
    return type(kind.__name__, (_PlannedProducts, kind), {"__module__": kind.__module__})
