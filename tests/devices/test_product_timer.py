"""Products of a matrix are built, checked against the reference result, and timed in turn."""

from dataclasses import replace

import numpy as np
import pytest

from sparsecast.devices import DEVICES
from sparsecast.devices.product_timer import ProductTimer
from sparsecast.errors import WrongResultError
from sparsecast.formats.narrowing import LOSSY
from sparsecast.matrices.gallery import gallery
from sparsecast.measuring.timing import Effort
from sparsecast.records import Candidate, Parameters

KERNELS = {name: DEVICES.get("cpu").kernels.get(name).variants[0] for name in ("csr", "ell")}
CSR = Candidate("csr", KERNELS["csr"], "cpu", "float32", 32, 1)


@pytest.fixture
def timer():
    return ProductTimer(gallery("poisson2d", n=9), CSR, DEVICES.get("cpu"))


def test_a_product_is_built_in_the_types_of_the_question_and_timed(timer):
    products = {
        name: timer.build(replace(CSR, format=name, kernel=kernel)) for name, kernel in KERNELS.items()
    }
    assert timer.A.dtype == np.float32 and all(0 <= p.error < 1e-6 for p in products.values())
    assert products["csr"].convert_s == 0 < products["ell"].convert_s
    timings = timer.time({name: timer.call(p) for name, p in products.items()}, Effort(3, 1e-5))
    assert set(timings) == set(products) and all(t.time_s > 0 for t in timings.values())
    assert np.allclose(timer.out, timer.A @ timer.x, atol=1e-5)


def test_a_row_that_a_product_forgets_is_found_out(timer):
    def forgetful(x, out):
        out[:-1] = (timer.A @ x)[:-1]

    with pytest.raises(WrongResultError):
        timer.check(forgetful, "a product")


def test_rounded_values_are_allowed_their_own_errors_and_no_more():
    A = gallery("poisson2d", n=9) * 0.1
    timer = ProductTimer(A, replace(CSR, dtype="float64"), DEVICES.get("cpu"))
    lossy = replace(CSR, parameters=Parameters({"values": LOSSY}))
    rounded = A.astype(np.float32).astype(np.float64)
    wrong = rounded.copy()
    wrong.data[7] *= 1 + 2e-6

    def product(matrix):
        return lambda x, out: np.copyto(out, matrix @ x)

    assert 1e-9 < timer.check(product(rounded), "a product", [lossy]) < 2.0**-24
    for matrix, candidates in ((rounded, ()), (wrong, [CSR, lossy])):
        with pytest.raises(WrongResultError):
            timer.check(product(matrix), "a product", candidates)
