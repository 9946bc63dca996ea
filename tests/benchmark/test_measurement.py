"""Measuring candidates: every result is checked before its time is believed."""

import dataclasses
from itertools import count

import numpy as np
import pytest

import sparsecast as sc
from sparsecast.benchmark.measurement import Instruments, check_plan, measure_candidates
from sparsecast.devices.binding import Bound
from sparsecast.devices.cpu.processor import Processor
from sparsecast.devices.cuda import driver_errors
from sparsecast.devices.product_timer import right_hand_side
from sparsecast.devices.target import Target, whole_matrix
from sparsecast.errors import DeviceError, MatrixSizeError, WrongResultError
from sparsecast.features.analysis import structure
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Effort
from sparsecast.operators.block_operator import BlockOperator, RowProduct
from sparsecast.system.version import VERSION

SETTING = Target("cpu", "float64", 32, 1)
EFFORT = Effort(samples=3, sample_s=1e-4)


@pytest.fixture(scope="module")
def subject():
    A = gallery("banded", n=300)
    return Problem.of(A, "banded")


@pytest.mark.parametrize("dtype", ("float64", "complex128", "complex64"))
def test_every_format_is_checked_and_recorded(subject, dtype):
    ticks, made = [], subject
    if dtype != "float64":
        A = subject.matrix.astype("complex128")
        A.data.imag = A.data.real[::-1]
        made = Problem.of(A)
    chosen = whole_matrix(subject.structure, dataclasses.replace(SETTING, dtype=dtype), detect()).candidates
    records = measure_candidates(made, "user", chosen, EFFORT, on_sample=lambda: ticks.append(1))
    assert [record.candidate for record in records] == list(chosen)
    assert {record.candidate.format for record in records} == set(FORMATS.names())
    assert len(ticks) == EFFORT.samples * len(chosen)
    for record in records:
        assert len(record.samples_s) >= EFFORT.samples  # more where the cores were slow
        assert min(record.samples_s) <= record.time_s <= max(record.samples_s)
        assert record.error <= 4 * np.finfo(dtype).eps
        assert (record.matrix, record.suite, record.version) == (made.specification, "user", VERSION)
        is_in_place = record.candidate.format == "csr" and not record.candidate.parameters
        assert is_in_place == (record.convert_s == 0) or dtype == "complex64"
        assert record.energy_j is None and record.stored_bytes > 0
        # One triangle may do, one index for a block of 64 values, and for real values half of their bytes.
        value_bytes = 4 if dtype == "float64" else np.dtype(dtype).itemsize
        assert record.traffic_bytes >= made.matrix.nnz / 2 * (value_bytes + 4 / 64)


class Full(Processor):
    """This machine, with room for plain CSR only."""

    def bind(self, A, candidate):
        if candidate.format != "csr" or candidate.parameters:
            raise MatrixSizeError(f"{candidate.format} would take 9 GB: expected less; take another")
        return super().bind(A, candidate)


def test_what_does_not_fit_beside_the_others_is_left_out_with_its_reason(subject):
    told = {}
    chosen = whole_matrix(subject.structure, SETTING, detect()).candidates
    (record,) = measure_candidates(
        *(subject, "user", chosen, EFFORT),
        instruments=Instruments(Full()),
        on_left_out=lambda candidate, why: told.setdefault(candidate, str(why)),
    )
    assert record.candidate.format == "csr"
    assert {*told, record.candidate} == set(chosen)
    assert all(f"{candidate.format} would take 9 GB" in why for candidate, why in told.items())


class Meter:
    """Has counted two joules more each time it is read."""

    source, run_s, step_s = "nvml", 1e-4, 1e-5

    def __init__(self):
        self.joules = count(0.0, 2.0).__next__


def test_what_a_meter_counted_is_recorded_with_its_source(subject):
    ticks = []
    (candidate, *_) = whole_matrix(subject.structure, SETTING, detect()).candidates
    (record,) = measure_candidates(
        *(subject, "user", [candidate], EFFORT, Instruments(Processor(), Meter(), idle_w=5.0)),
        lambda: ticks.append(1),
    )
    assert record.energy_j > 0 and record.energy_source == "nvml"
    assert record.conditions.idle_w == 5.0
    assert len(ticks) == EFFORT.samples + 1, "a reading is a step like a sample"


def test_a_wrong_kernel_is_found_out_before_it_is_timed(subject):
    class Almost(Processor):
        def bind(self, A, candidate):
            bound, convert_s = super().bind(A, candidate)

            def product(x, out):
                bound.product(x, out)
                out[7] *= 1 + 1e-9

            return Bound(bound.matrix, product), convert_s

    candidates = whole_matrix(subject.structure, SETTING, detect()).candidates
    with pytest.raises(WrongResultError):
        measure_candidates(
            subject,
            "user",
            [c for c in candidates if c.format == "csr"],
            EFFORT,
            instruments=Instruments(Almost()),
        )


def test_a_format_that_does_not_suit_is_left_out():
    A = gallery("arrow", n=2000, dense_rows=1)
    even = whole_matrix(structure(gallery("banded", n=300)), SETTING, detect()).candidates
    records = measure_candidates(Problem.of(A, "arrow"), "user", even, EFFORT)
    assert {record.candidate.format for record in records} == {c.format for c in even} - {"dia", "ell"}


class CudaAPIError(Exception):
    """As numba-cuda raises it."""


class Driven(Processor):
    """This machine, with the driver of a GPU."""

    def errors(self):
        return driver_errors()


@pytest.mark.parametrize("step", ["put", "call", "bind"])
def test_a_device_lost_in_the_middle_is_said_in_one_line(subject, step):
    def lost(*arguments):
        raise CudaAPIError("[46] Call to cuMemcpy results in CUDA_ERROR_DEVICE_UNAVAILABLE")

    device = type("Lost", (Driven,), {step: lost})()
    chosen = whole_matrix(subject.structure, SETTING, detect()).candidates[:1]
    with pytest.raises(DeviceError):
        measure_candidates(subject, "user", chosen, EFFORT, Instruments(device))


def test_a_candidate_that_does_not_fit_on_the_device_after_all_is_left_out(subject):
    class FullOfELL(Driven):
        def bind(self, A, candidate):
            if candidate.format == "ell":
                raise CudaAPIError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")
            return super().bind(A, candidate)

    chosen = [
        c for c in whole_matrix(subject.structure, SETTING, detect()).candidates if c.format in ("csr", "ell")
    ]
    records = measure_candidates(subject, "user", chosen, EFFORT, instruments=Instruments(FullOfELL()))
    assert {record.candidate.format for record in records} == {"csr"}


def test_the_right_hand_side_is_the_same_every_time():
    x = right_hand_side(1000, "float32")
    assert x.dtype == np.float32
    assert np.array_equal(x, right_hand_side(1000, "float32"))
    assert np.abs(x).max() <= 1


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
        check_plan(A, made, lambda: operator, EFFORT, Used())


def test_a_device_that_is_lost_while_a_plan_is_checked_is_said_in_one_line(planned):
    def lost():
        raise CudaAPIError("[719] Call to cuLaunchKernel results in CUDA_ERROR_LAUNCH_FAILED")

    with pytest.raises(DeviceError):
        check_plan(*planned, lost, EFFORT, Driven())
