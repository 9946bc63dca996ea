"""Every CUDA kernel on the device at hand, or in the simulator of numba-cuda with few rows.

`test_on_device.py` runs this in processes of its own, because the simulator is chosen once for a process.
"""

import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from sparsecast import api
from sparsecast.benchmark.measurement import Instruments, check_plan, measure_candidates
from sparsecast.devices import DEVICES
from sparsecast.devices.binding import prepared, row_slice
from sparsecast.devices.cuda import NvidiaGPU
from sparsecast.devices.gpu import launching, tiles
from sparsecast.devices.gpu.clock import EventClock, device_copy, device_download, device_read, device_upload
from sparsecast.devices.gpu.kernels.csr import PIECE
from sparsecast.devices.gpu.launching import SIMULATED, THREADS, cuda
from sparsecast.devices.gpu.operator import DeviceOperator
from sparsecast.devices.gpu.tiles import TILE
from sparsecast.devices.product_timer import ReferenceProduct
from sparsecast.devices.target import Target, whole_matrix
from sparsecast.errors import InputError, MatrixSizeError, PaddingError, WrongResultError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.bcsr import BCSR
from sparsecast.formats.sell import SELL
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Effort, measure
from sparsecast.operators.applications.cg import conjugate_gradients
from sparsecast.operators.applications.pagerank import links, pagerank
from sparsecast.operators.block_operator import RowProduct, Transposed
from sparsecast.records import Candidate
from sparsecast.results.plan import Plan, PlannedBlock

from ...conftest import exact_product, left_packed, narrow_storages, with_lengths

CUDA = DEVICES.get("cuda").kernels
KERNEL_NAMES = [(name, variant) for name in CUDA.names() for variant in CUDA.get(name).variants]
TILED = [("csr", "balanced"), ("csr", "adaptive"), ("coo", "segmented"), ("hyb", "columns")]
#: In the simulator, kernels of the least and the greatest number of threads a row stand for those between,
#: which have the same code and meet few matrices.
TRIED = [each for each in KERNEL_NAMES if not (SIMULATED and each[1] in ("vector4", "vector8", "vector16"))]
#: Kernels with the narrow storages that they meet: those with several threads a row the next one each.
NARROW = [
    (kernel, parameters)
    for place, kernel in enumerate(KERNEL_NAMES)
    if CUDA.get(kernel[0]).reads_narrow
    for number, parameters in enumerate(narrow_storages(kernel[0], "float64"))
    if not (SIMULATED and kernel[1].startswith("vector")) or number == place % 3
]
#: In the simulator one: each has its matrices converted by code that the host compiles.
OTHER_TYPES = [("float32", 64)] if SIMULATED else [("float32", 32), ("float64", 64), ("float32", 64)]
GUARD = 7.0
PLANNED = [("csr", "vector2"), ("ell", "columns")]
ONCE = Effort(samples=1, sample_s=1e-6)

every_kernel = pytest.mark.parametrize("kernel", KERNEL_NAMES, ids="-".join)
every_tiled_kernel = pytest.mark.parametrize("kernel", TILED, ids="-".join)


@pytest.fixture(autouse=True, scope="module")
def on_one_core():
    """The simulator's Python threads take turns, which lasts longer on several cores than on one."""
    if SIMULATED and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def bound(kernel, A, storage=None):
    """The product of a kernel, or None where its format refuses the padding."""
    name, variant = kernel
    try:
        return CUDA.get(name).bind(storage or FORMATS.get(name).from_csr(A), variant, 1)
    except PaddingError:
        return None


def product_of(product, rows, x):
    """A x, having looked for forgotten rows and for writes beyond the rows."""
    guarded = np.full(rows + 16, GUARD, dtype=x.dtype)
    guarded[8 : 8 + rows] = np.nan
    buffer, there = cuda.to_device(guarded), cuda.to_device(x)
    product(there, buffer[8 : 8 + rows])
    assert np.array_equal(there.copy_to_host(), x, equal_nan=True), "x was written to"
    whole = buffer.copy_to_host()
    assert (whole[:8] == GUARD).all() and (whole[8 + rows :] == GUARD).all(), "written beyond the rows"
    return whole[8 : 8 + rows]


def whole_numbers(cols, dtype):
    return np.random.default_rng(2).integers(-9, 10, cols).astype(dtype)


def check(kernel, what, A, x=None):
    """Compare with the oracle, or exactly where all numbers are whole; tell whether the format took `A`."""
    product = bound(kernel, A)
    if product is None:
        return False
    is_whole = np.array_equal(A.data, np.round(A.data)) and abs(A.data).max(initial=0) < 1000
    x = whole_numbers(A.shape[1], A.dtype) if x is None else x
    y = product_of(product, A.shape[0], x)
    ReferenceProduct.of(A, x).check(y, f"{'-'.join(kernel)} on '{what}'")
    assert not is_whole or np.array_equal(y, exact_product(A, x)), what
    return True


def of_lengths(lengths, cols):
    """A matrix of whole numbers whose rows begin in column 0."""
    A = left_packed(list(lengths), cols)
    A.data[:] = np.random.default_rng(3).integers(-5, 6, A.nnz)
    return A


def threads_a_row(kernel):
    """The simulator starts a Python thread for each thread of a device: fewer rows where each has many."""
    return int(kernel[1][6:]) if kernel[1].startswith("vector") else 1


@pytest.mark.parametrize("kernel", TRIED, ids="-".join)
def test_equals_oracle_and_whole_numbers_are_exact(matrices, kernel):
    most_rows = 70 if SIMULATED else 100_000
    fit = {what: A for what, A in matrices.items() if A.shape[0] <= most_rows and A.dtype.kind != "c"}
    assert len(fit) > 20 and max(A.shape[0] for A in fit.values()) > 64
    taken = sum(check(kernel, what, A) for what, A in fit.items())
    assert taken > len(fit) / 2


@every_kernel
@pytest.mark.parametrize("dtype, bits", OTHER_TYPES)
def test_equals_oracle_in_every_type(matrices, kernel, dtype, bits):
    for what in ("lengths 0 to 9", "constant length 4", "duplicates", "last rows empty"):
        check(kernel, what, prepared(matrices[what], dtype, bits))


@every_kernel
def test_offsets_that_need_64_bits(matrices, kernel, monkeypatch):
    monkeypatch.setattr(launching, "_LARGEST_NARROW_OFFSET", -1)
    for what in ("constant length 4", "unsorted"):
        check(kernel, what, matrices[what])


@every_kernel
def test_more_rows_than_a_block_has_threads_for(matrices, kernel):
    lanes = threads_a_row(kernel)
    A = gallery("poisson2d", n=(13 if lanes < 4 else 7) if SIMULATED else 301)
    assert A.shape[0] * lanes > THREADS and A.shape[0] % 32
    assert check(kernel, "poisson2d", A)
    if lanes == 1:
        check(kernel, "geometric lengths", matrices["geometric lengths"])


@every_tiled_kernel
@pytest.mark.parametrize("most_parts", (1, 2))
def test_several_tiles_a_block_and_rows_across_blocks(matrices, kernel, most_parts, monkeypatch):
    monkeypatch.setattr(tiles, "MAX_PARTS", most_parts)
    for what in ("a long row among empty ones", "long rows at both ends", "circuit n=500"):
        A = matrices[what]
        assert A.nnz > 2 * TILE
        assert check(kernel, what, A)


# HYB's launches are those of COO, which add to y: the tests before this one have them.
@pytest.mark.parametrize("kernel", TILED[:3], ids="-".join)
def test_a_row_over_many_blocks_beside_short_ones(kernel):
    longest = 35 if SIMULATED else 3000  # more blocks than a warp has lanes to add their carries
    lengths = [3, 0, longest * TILE + 11, 1, 0, 2, 2 * TILE, TILE, 0]
    assert check(kernel, "huge rows", of_lengths(lengths, (longest + 1) * TILE))


@pytest.mark.parametrize("rows", (TILE - 1, TILE, TILE + 1, 3 * TILE + 5))
def test_more_empty_rows_than_a_tile_holds(rows):
    A = csr_array(([1.0, 2.0, 3.0], ([5, rows // 2, rows - 1], [0, 1, 2])), shape=(rows, 4))
    assert check(("csr", "balanced"), "empty rows", A) and check(("csr", "adaptive"), "empty rows", A)
    assert check(("coo", "segmented"), "empty rows", A)


@every_tiled_kernel
@pytest.mark.parametrize("nnz", (TILE - 1, TILE, 2 * TILE))
def test_entries_that_end_with_a_tile(kernel, nnz):
    indices = np.zeros(nnz, dtype=np.int32)
    for lengths in ([nnz], [nnz - TILE // 2, 0, TILE // 2]):
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        A = csr_array((np.ones(nnz), indices, indptr), shape=(len(lengths), 1))
        assert check(kernel, f"{lengths}", A)


@every_kernel
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_values_that_are_not_finite_stay_in_their_rows(kernel):
    A = gallery("circuit", n=60)
    A.data[[5, 100, 101, 150]] = np.nan, np.inf, -np.inf, -np.inf
    x = np.random.default_rng(1).uniform(0.5, 1.0, 60)
    y = product_of(bound(kernel, A), 60, x)
    expected = A @ x
    strange = ~np.isfinite(expected)
    assert 1 <= strange.sum() <= 4
    assert np.array_equal(y[strange], expected[strange], equal_nan=True)
    ReferenceProduct.of(A, x).check(y, "-".join(kernel))


@pytest.mark.parametrize("longest", (PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 1))
def test_rows_of_whole_pieces_and_of_one_entry_more(longest):
    A = of_lengths([longest, 0, *[3] * 40, longest - 1, longest], longest)
    assert check(("csr", "adaptive"), f"{longest}", A)


@pytest.mark.parametrize(
    ("kernel", "parameters"),
    NARROW,
    ids=lambda each: "-".join(map(str, each.values() if isinstance(each, dict) else each)),
)
def test_narrow_storage_has_the_bits_of_full_storage(kernel, parameters):
    """In groups of rows far from each other, with rows that SELL sorts and that CSR cuts into pieces."""
    storage = FORMATS.get(kernel[0])
    lengths = np.array([9, 0, 3, 5, 1, 0, 2, 31] * 33)
    if kernel[0] == "csr":
        lengths[[7, 260]] = PIECE + 5
    A = with_lengths(lengths.tolist(), 2 * PIECE, seed=4)
    A.indices[A.indptr[256] :] += 180_000
    A = csr_array((A.data / 4, A.indices, A.indptr), shape=(len(lengths), 180_000 + 2 * PIECE))
    if parameters.get("values") == "one":
        A.data[:] = -1.7
    x = np.random.default_rng(1).uniform(-1, 1, A.shape[1])
    full, narrow = storage.from_csr(A), storage.from_csr(A, **parameters)
    assert narrow.nbytes < full.nbytes and len(narrow.bases) == 2 and narrow.bases.any()
    y, narrow_y = (product_of(bound(kernel, A, stored), A.shape[0], x) for stored in (full, narrow))
    ReferenceProduct.of(A, x).check(narrow_y, f"{'-'.join(kernel)} of {parameters}")
    assert narrow_y.tobytes() == y.tobytes()


@pytest.mark.parametrize("r, c", [(1, 1), (1, 8), (8, 1), (2, 3), (3, 2), (4, 6), (6, 6), (6, 8), (8, 8)])
def test_block_sizes_of_bcsr(r, c):
    for rows, cols in ((35, 40), (5, 3)):
        A = random_array((rows, cols), density=0.5, rng=np.random.default_rng(4), format="csr")
        A.data = np.round(9 * A.data)
        A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
        x = whole_numbers(A.shape[1], "float64")
        product = bound(("bcsr", "blocks"), A, BCSR.from_csr(A, (r, c)))
        assert np.array_equal(product_of(product, A.shape[0], x), exact_product(A, x))


@pytest.mark.parametrize("sigma", (1, 8, 32, 64, 256))
def test_every_window_of_sell(matrices, sigma):
    for what in ("geometric lengths", "lengths 0 to 9", "one column"):
        A = matrices[what]
        x = whole_numbers(A.shape[1], "float64")
        product = bound(("sell", "chunks"), A, SELL.from_csr(A, sigma=sigma))
        assert np.array_equal(product_of(product, A.shape[0], x), exact_product(A, x)), what


# The operator


def rows_of(A, name="csr", variant=0, first=0):
    """The product of all rows of a matrix, which are those from `first` on of an operator."""
    kernels = CUDA.get(name)
    built = FORMATS.get(name).from_csr(prepared(A, "float64", 32))
    return RowProduct(first, first + A.shape[0], kernels.bind(built, kernels.variants[variant], 1))


def on_device(A):
    return DeviceOperator(A.shape, A.dtype, [rows_of(A)])


@pytest.fixture
def operator():
    """A matrix, and its operator of three row blocks in different formats."""
    A = gallery("circuit", n=150)
    parts = (0, 40, "sell"), (40, 41, "csr"), (41, 150, "coo")
    blocks = [rows_of(row_slice(A, first, last - 1), name, -1, first) for first, last, name in parts]
    return A, DeviceOperator(A.shape, A.dtype, blocks)


def test_the_operator_takes_x_here_and_gives_y_here(operator):
    A, op = operator
    for seed in range(3):
        x = np.random.default_rng(seed).uniform(-1, 1, 150)
        ReferenceProduct.of(A, x).check(op.matvec(x), "operator")
    assert np.allclose(op @ x, A @ x) and op.nbytes > A.data.nbytes
    out = np.empty(150)
    assert op.matvec(x, out) is out
    assert np.array_equal(op.matvec(np.float32(x)), op.matvec(np.float32(x).astype(float)))
    assert np.allclose(op.matvec(x + 2j * x), A @ (x + 2j * x))
    assert op.matvec(x[:, None]).shape == (150, 1)


def test_the_operator_takes_x_there_and_leaves_y_there(operator):
    A, op = operator
    x = np.random.default_rng(0).uniform(-1, 1, 150)
    there, out = cuda.to_device(x), cuda.to_device(np.full(150, np.nan))
    assert op.matvec(there, out) is out
    y = out.copy_to_host()
    ReferenceProduct.of(A, x).check(y, "operator")
    assert op.matvec(there).copy_to_host().tobytes() == y.tobytes() == op.matvec(x).tobytes()
    assert (op @ there).copy_to_host().tobytes() == y.tobytes()


@pytest.mark.parametrize(
    ("x", "step", "out"),
    [
        (np.ones(149), 1, np.ones(150)),
        (np.ones(150, np.float32), 1, np.ones(150)),
        (np.ones(300), 2, np.ones(150)),
        (np.ones(150), 1, np.ones(151)),
        (np.ones((150, 1)), 1, np.ones(150)),
    ],
)
def test_the_operator_refuses_arrays_there_that_no_kernel_takes(operator, x, step, out):
    with pytest.raises(InputError):
        operator[1].matvec(cuda.to_device(x)[::step], cuda.to_device(out))


def test_the_operator_refuses_arrays_in_two_places_and_in_one(operator):
    op, here, there = operator[1], np.ones(150), cuda.to_device(np.ones(150))
    for x, out in ((here, there), (there, here)):
        with pytest.raises(InputError):
            op.matvec(x, out)
    with pytest.raises(InputError):
        op.matvec(there, there)
    buffer = cuda.to_device(np.ones(299))
    with pytest.raises(InputError):
        op.matvec(buffer[:150], buffer[149:])


@pytest.mark.parametrize("products", (1, 2, 5))
def test_a_graph_has_the_bits_of_products_one_by_one(operator, products):
    op, x = operator[1], np.random.default_rng(0).uniform(-1, 1, 150)
    there, out = cuda.to_device(x), cuda.to_device(np.full(150, np.nan))
    run = op.graph(there, out, products)
    assert np.isnan(out.copy_to_host()).all(), "queued before it was asked"
    run()
    expected = x
    for _ in range(products):
        expected = op.matvec(expected)
    last = out if products % 2 else there
    assert last.copy_to_host().tobytes() == expected.tobytes()
    there.copy_to_device(x)
    run(0)
    assert last.copy_to_host().tobytes() == expected.tobytes()


def test_a_graph_is_refused_without_products_and_of_several_with_a_matrix_that_is_not_square(operator):
    op, x, y = operator[1], cuda.to_device(np.ones(150)), cuda.to_device(np.ones(150))
    for arguments in ((x, y, 0), (x, x, 1), (x, np.ones(150), 1), (np.ones(150), y, 1)):
        with pytest.raises(InputError):
            op.graph(*arguments)
    A = gallery("random", n=60, cols=45, nnz_per_row=3)
    with pytest.raises(InputError):
        on_device(A).graph(cuda.to_device(np.ones(45)), cuda.to_device(np.ones(60)), 2)


def test_the_operator_has_a_transpose_there_and_here():
    A = gallery("random", n=60, cols=45, nnz_per_row=3)
    op = DeviceOperator(A.shape, A.dtype, [rows_of(A)], lambda: Transposed([rows_of(csr_array(A.T))]))
    x = np.random.default_rng(0).uniform(-1, 1, 60)
    there, out = cuda.to_device(x), cuda.to_device(np.full(45, np.nan))
    assert op.rmatvec(there, out) is out
    assert np.allclose(out.copy_to_host(), A.T @ x) and np.allclose(op.rmatvec(x), A.T @ x)
    assert np.allclose((op.T @ there).copy_to_host(), A.T @ x)
    assert np.allclose(op.rmatmat(np.stack((x, -x), axis=1))[:, 1], A.T @ -x)
    assert isinstance(op.T, DeviceOperator) and op.T.T.blocks is op.blocks


def test_applications_run_unchanged():
    """Their vectors are on the host, and travel for each product."""
    graph = gallery("rmat", scale=5)
    graph.data[:] = 1.0
    made = links(graph)
    found = pagerank(on_device(made.matrix), made.dangling, made.inverse_weight)
    assert found.stop == "converged" and found.ranks.sum() == pytest.approx(1.0)
    sent = made.matrix @ (found.ranks * made.inverse_weight)
    again = 0.85 * sent + (0.85 * found.ranks[made.dangling].sum() + 0.15) / made.nodes
    assert np.abs(again - found.ranks).sum() <= found.residuals[-1]
    A = gallery("poisson2d", n=6)
    b = np.random.default_rng(0).uniform(-1, 1, 36)
    for inverse in (None, 1 / A.diagonal()):
        solved = conjugate_gradients(on_device(A), b, inverse, tolerance=1e-10)
        assert solved.stop == "converged" and np.allclose(A @ solved.x, b)


def test_the_spaces_of_the_operator_are_of_vectors_there(operator):
    op, (x, y) = operator[1], np.random.default_rng(0).uniform(-1, 1, (2, 150))
    zeros = op.domain.zeros()
    assert zeros.copy_to_host().tolist() == [0.0] * 150 and zeros.dtype == op.dtype
    assert op.domain.dot(cuda.to_device(x), cuda.to_device(y)) == pytest.approx(np.dot(x, y))
    assert op.range.norm(op.matvec(cuda.to_device(x))) == pytest.approx(np.linalg.norm(operator[0] @ x))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (7, 5)])
def test_the_operator_of_a_matrix_without_entries(shape):
    A = csr_array(shape)
    for name in CUDA.names():
        op = DeviceOperator(shape, A.dtype, [rows_of(A, name, -1)])
        assert op.matvec(np.ones(shape[1])).tolist() == [0.0] * shape[0], name


def without_allocation(monkeypatch, *free):
    """Stand in for a device with so much free memory, which has no function that allocates.

    With a second number, that much is free once arrays that are gone have been freed.
    """
    left = list(free)
    freed = SimpleNamespace(clear=lambda: left.pop(0) if len(left) > 1 else None)
    context = SimpleNamespace(get_memory_info=lambda: SimpleNamespace(free=left[0]), deallocations=freed)
    monkeypatch.setattr(launching, "cuda", SimpleNamespace(current_context=lambda: context))


def test_more_than_the_free_memory_of_the_device_is_refused_before_it_is_taken(monkeypatch):
    without_allocation(monkeypatch, 10_000_000)
    with pytest.raises(MatrixSizeError):
        bound(("csr", "scalar"), gallery("banded", n=10_000, half_bandwidth=500))


def test_hyb_is_all_coo_where_too_few_rows_keep_the_device_busy():
    A = gallery("banded", n=40, half_bandwidth=1)
    found = RowBlocks.of(structure(A))
    candidate = Target("cuda", "float64", 32, 1).candidate("hyb", found, detect())
    bound, _ = NvidiaGPU().bind(A, candidate)
    assert bound.matrix.indices.shape == (40, 0) and len(bound.matrix.overflow_data) == A.nnz


def chosen_for(A):
    """The Candidates of two kernels in full storage, one of them in two formats."""
    target = Target("cuda", "float64", 32, 1)
    full = [
        each
        for each in whole_matrix(structure(A), target, detect()).candidates
        if not each.parameters.get("columns")
    ]
    return [each for each in NvidiaGPU().calibrated(full) if each.kernel in ("scalar", "columns")]


def test_measuring_reads_energy_while_the_meter_gives_it():
    class ReplayMeter:
        source, run_s, step_s = "replay", 1e-6, 1e-7
        readings = iter([1.0, 3.0, 5.0, 5.0, 5.0, None])

        def joules(self):
            return next(self.readings)

    A = gallery("poisson2d", n=4)
    candidates = chosen_for(A)
    instruments = Instruments(NvidiaGPU(), ReplayMeter())
    records = measure_candidates(Problem.of(A, "poisson2d"), "user", candidates, ONCE, instruments)
    assert [record.candidate for record in records] == candidates
    assert [record.regime for record in records] == ["warm"] * 3
    assert [record.energy_source for record in records] == ["replay", None, None]
    assert [record.energy_j for record in records] == [2.0, None, None]


def test_cold_products_use_copies_in_turn_each_with_arrays_of_its_own(monkeypatch):
    A, device = gallery("poisson2d", n=4), NvidiaGPU(cold_bytes=5000)
    candidate = chosen_for(A)[0]
    (record,) = measure_candidates(Problem.of(A), "user", [candidate], ONCE, Instruments(device))
    assert record.regime == "cold"
    bound, _ = device.bind(A, candidate)
    seen = []

    def noted(product, x, out, stream):
        seen.append((id(product), str(x), str(out)))

    monkeypatch.setattr(launching.DeviceProduct, "launch", noted)
    monkeypatch.setattr(launching, "pointer", id)
    call = device.call(candidate, bound, device.put(np.ones(16)), device.put(np.zeros(16)))
    copies = 5000 // bound.matrix.traffic() + 1
    assert copies > 2
    for _ in range(2 * copies):
        call()
    assert len(set(seen)) == copies and seen[:copies] == seen[copies:]
    assert all(len({part[i] for part in seen}) == copies for i in range(3))
    monkeypatch.undo()
    without_allocation(monkeypatch, 3000)
    with pytest.raises(MatrixSizeError):
        device.call(candidate, bound, np.zeros(16), np.zeros(16))


def test_a_kernel_that_forgets_its_rows_is_not_measured(monkeypatch):
    A = gallery("poisson2d", n=4)
    monkeypatch.setattr(launching.DeviceProduct, "launch", lambda product, x, out, stream: None)
    with pytest.raises(WrongResultError):
        measure_candidates(Problem.of(A), "user", chosen_for(A)[:1], ONCE)


def test_the_clock_counts_calls_and_streams_move_whole_words():
    clock, calls = EventClock(), []
    assert clock.seconds(lambda: calls.append(1), 7) > 0 and len(calls) == 7
    timing = measure({"copy": device_copy(800)}, Effort(2, 1e-4), clock=clock)["copy"]
    assert len(timing.samples_s) == 2 and timing.time_s > 0
    for size, words in ((1, 1), (8, 1), (9, 2), (8 * 700, 700)):
        assert device_read(size)().copy_to_host().sum() == words, size
        assert device_download(size)().tolist() == [1.0] * words, size
        assert device_upload(size)().copy_to_host().tolist() == [1.0] * words, size


def test_a_plan_of_several_blocks_is_built_there_and_checked():
    A = gallery("banded", n=70, half_bandwidth=1)
    csr, ell = (Candidate(name, kernel, "cuda", "float64", 32, 1) for name, kernel in PLANNED)
    baseline = PlannedBlock(0, 69, csr, 1e-6, 1e-6)
    blocks = replace(baseline, last_row=29), replace(baseline, first_row=30, candidate=ell)
    plan = Plan(blocks, 1000, 2e-6, None, None, 2e-6, baseline, None)
    operator = api.compile(A, plan)
    assert isinstance(operator, DeviceOperator) and len(operator.blocks) == 2
    checked = check_plan(A, plan, lambda: operator, ONCE, NvidiaGPU())
    assert checked.time_s > 0 and checked.baseline_s > 0 and checked.scipy_s > 0


if SIMULATED:

    def launched(kernel, *arrays):
        cuda.jit(kernel)[2, 64](*arrays)

    def test_the_simulator_tells_a_kernel_that_lacks_a_barrier():
        # `conftest.py` has the threads of a block take turns: in another order after each barrier.
        def reversed_in_pairs(y, has_barriers):
            shared, place = cuda.shared.array(64, np.float64), cuda.threadIdx.x
            for step in range(2):
                shared[place] = y[64 * cuda.blockIdx.x + place] + step
                if has_barriers:
                    cuda.syncthreads()
                y[64 * cuda.blockIdx.x + place] = shared[place ^ 1]
                if has_barriers:
                    cuda.syncthreads()

        given = np.arange(128.0)
        y, spoilt = cuda.to_device(given), cuda.to_device(given)
        launched(reversed_in_pairs, y, True)
        assert y.copy_to_host().tolist() == (given + 1).tolist()
        launched(reversed_in_pairs, spoilt, False)
        assert spoilt.copy_to_host().tolist() != (given + 1).tolist()

    def test_the_simulator_tells_what_fails_in_one_thread_and_goes_on_after_it():
        def failing(y):
            if cuda.threadIdx.x == 5 and cuda.blockIdx.x == 1:
                raise ValueError("failed on purpose")
            cuda.syncthreads()
            y[64 * cuda.blockIdx.x + cuda.threadIdx.x] = 1.0

        y = cuda.to_device(np.zeros(128))
        with pytest.raises(ValueError, match="on purpose"):
            launched(failing, y)
        launched(lambda y: y.__setitem__(cuda.threadIdx.x, 2.0), y)
        assert set(y.copy_to_host()[:64]) == {2.0}
