"""What a plan's check finds out: rows that nobody computed, and a device that is lost."""

import numpy as np
import pytest

import sparsecast as sc
from sparsecast.benchmark.measurement import check_plan
from sparsecast.devices.cpu.processor import Processor
from sparsecast.devices.cuda import driver_errors
from sparsecast.devices.product_timer import right_hand_side
from sparsecast.errors import DeviceError, WrongResultError
from sparsecast.measuring.timing import Effort
from sparsecast.operators.block_operator import BlockOperator, RowProduct

ONCE = Effort(samples=2, sample_s=1e-4)


@pytest.fixture
def planned(recorded):
    A = sc.gallery("banded", n=60)
    return A, sc.plan(A, recorded, threads=1)


def test_an_operator_that_forgets_its_rows_is_found_out(planned):
    A, made = planned
    x = right_hand_side(60, "float64")

    class Used(Processor):
        """Memory that holds what the product before has left there, where nothing else is put."""

        def put(self, array):
            return array if np.isnan(array).all() or np.array_equal(array, x) else A @ x

    operator = BlockOperator(A.shape, np.dtype("float64"), [RowProduct(0, 60, lambda x, out: None)])
    with pytest.raises(WrongResultError):
        check_plan(A, made, lambda: operator, ONCE, Used())


class CUDAError(Exception):
    """As cuda.core raises it."""


def test_a_device_that_is_lost_meanwhile_is_said_in_one_line(planned):
    def lost():
        raise CUDAError("[719] Call to cuLaunchKernel results in CUDA_ERROR_LAUNCH_FAILED")

    class Driven(Processor):
        def errors(self):
            return driver_errors()

    with pytest.raises(DeviceError):
        check_plan(*planned, lost, ONCE, Driven())
