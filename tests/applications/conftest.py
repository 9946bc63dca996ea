"""Operators for the applications: of our kernels where one is enough, without a profile or a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scipy.sparse import csr_array

from sparsecast.devices.binding import bind, prepared
from sparsecast.operators.block_operator import BlockOperator, RowProduct
from sparsecast.records import Candidate


def _operator(A: csr_array, dtype: str = "float64") -> BlockOperator:
    product = bind(prepared(A, dtype, 32), Candidate("csr", "plain", "cpu", dtype, 32, 1)).product
    return BlockOperator(A.shape, A.dtype, [RowProduct(0, A.shape[0], product)])


@pytest.fixture(scope="session")
def operator() -> Callable[..., Any]:
    """Return the operator of a matrix in CSR."""
    return _operator
