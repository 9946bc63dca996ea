"""What distributed products must do, on any communicator: of mpi4py, or simulated by threads.

Every case is called on all ranks. Values are small integers, so that sums are exact in any order, in every
type; a case that is about rounding says so.
"""

import gc
import importlib.util
import re
import weakref
import zlib
from pathlib import Path

import numpy as np
from scipy.io import mmwrite
from scipy.sparse import coo_array, csr_array

from sparsecast.devices.binding import bind, prepared
from sparsecast.distributed import compile
from sparsecast.distributed.products import default_algorithms
from sparsecast.errors import InputError, RanksError
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.matrices.reading import load
from sparsecast.operators.applications.cg import conjugate_gradients
from sparsecast.operators.applications.pagerank import links, pagerank
from sparsecast.operators.block_operator import BlockOperator, RowProduct
from sparsecast.records import DTYPES, Candidate, Configuration
from sparsecast.system.parallel import equal_parts


def integers(shape, dtype="float64", seed=0):
    """Return small integers, with imaginary parts where the type has them."""
    generator = np.random.default_rng(seed)
    values = generator.integers(-4, 5, shape).astype(dtype)
    return values + 1j * generator.integers(-4, 5, shape) if np.dtype(dtype).kind == "c" else values


def random_matrix(rows, cols, entries, dtype="float64", seed=0):
    generator = np.random.default_rng(seed)
    places = generator.integers(0, max(rows, 1), entries), generator.integers(0, max(cols, 1), entries)
    return csr_array(coo_array((integers(entries, dtype, seed).astype(dtype), places), shape=(rows, cols)))


def partition(shape, ranks, is_2d=False, empties=False, order=None):
    """Return parts of equal numbers; with `empties`, every second part is empty."""
    parts = int(np.sqrt(ranks)) if is_2d else ranks
    rows, cols = (equal_parts(each, parts) for each in shape)
    if empties:
        rows, cols = (np.repeat(each[::2], 2)[-parts - 1 :] for each in (rows, cols))
        rows[0] = cols[0] = 0
        rows[-1], cols[-1] = shape
    if shape[0] == shape[1]:
        cols = rows
    return Partition("uniform-2d" if is_2d else "rows", ranks, rows, cols, order)


def configuration(algorithm, ranks, dtype="float64", formats=("csr", "csr"), method=None):
    method = method or ("uniform-2d" if algorithm == "2d" else "rows")
    return Configuration(algorithm, *formats, method, ranks, 1, dtype)


def algorithms(ranks):
    """Return the algorithms that so many ranks can do."""
    return [name for name in default_algorithms() if name != "2d" or int(np.sqrt(ranks)) ** 2 == ranks]


def at_first(comm, value):
    """Return what rank 0 alone has."""
    return value if comm.rank == 0 else None


def compiled(comm, algorithm, A, dtype="float64", formats=("csr", "csr"), **how):
    made = partition(A.shape, comm.size, algorithm == "2d", **how)
    asked = configuration(algorithm, comm.size, dtype, formats)
    return compile(at_first(comm, A), asked, comm, at_first(comm, made))


def same(comm, op, A, seed=1):
    """Compare A x, A^T x and A^H x with the dense products."""
    dense = A.toarray()
    for its, whole in ((op, dense), (op.T, dense.T), (op.H, dense.conj().T)):
        x = integers(whole.shape[1], op.dtype, seed).astype(op.dtype)
        y = its.gather(its.matvec(its.scatter(at_first(comm, x))))
        if comm.rank == 0:
            assert y.dtype == op.dtype
            np.testing.assert_array_equal(y, whole @ x)
        else:
            assert y is None


def products_are_right_in_every_type(comm, folder):
    order = np.random.default_rng(5).permutation(60)
    for dtype in DTYPES:
        A = random_matrix(60, 60, 300, dtype)
        for algorithm in algorithms(comm.size):
            same(comm, compiled(comm, algorithm, A, dtype, order=order), A)


def products_are_right_on_awkward_shapes(comm, folder):
    for rows, cols, entries in ((40, 17, 120), (3, 3, 5), (1, 30, 9), (0, 0, 0), (7, 0, 0), (0, 7, 0)):
        A = random_matrix(rows, cols, entries)
        for algorithm in algorithms(comm.size):
            same(comm, compiled(comm, algorithm, A, empties=rows > 7), A)


def methods_of_partitioning(comm, folder):
    """Made on rank 0 by the method that the Configuration names."""
    A = csr_array(gallery("poisson2d", n=9) + random_matrix(81, 81, 20))
    asked = [configuration("local-1d", comm.size, method="nonzeros")]
    if importlib.util.find_spec("pymetis"):
        asked.append(configuration("local-1d", comm.size, method="metis"))
    if "2d" in algorithms(comm.size):
        asked.append(configuration("2d", comm.size))
    for each in asked:
        same(comm, compile(at_first(comm, A), each, comm), A)
    named = compile("gallery:poisson2d?n=5", configuration("global-1d", comm.size), comm)
    same(comm, named, gallery("poisson2d", n=5))


def formats_of_both_parts(comm, folder):
    A = csr_array(gallery("poisson2d", n=12))
    for formats in (("coo", "csr"), ("dia", "coo")):
        same(comm, compiled(comm, "local-1d-overlap", A, formats=formats), A)


def vectors_stay_distributed(comm, folder):
    """Iterated, x never leaves the ranks; out is used."""
    A = random_matrix(30, 30, 100)
    order = np.random.default_rng(2).permutation(30)
    for algorithm in algorithms(comm.size):
        op = compiled(comm, algorithm, A, order=order)
        whole = integers(30)
        x = op.scatter(at_first(comm, whole))
        y, last = op.range.zeros(), x
        for _ in range(3):
            assert op.matvec(last, out=y) is y
            last = y.copy()
        result = op.gather(last)
        if comm.rank == 0:
            np.testing.assert_array_equal(result, A @ (A @ (A @ whole)))


def types_that_differ_hang_nobody(comm, folder):
    """A rank with another type would wait for the others, or add other bytes; what comes after works."""
    A = random_matrix(30, 30, 100)
    last = comm.size - 1
    for algorithm in algorithms(comm.size):
        op = compiled(comm, algorithm, A)
        x = op.scatter(at_first(comm, integers(30)))
        own = f"complex on rank {comm.rank}: expected .*apart"
        raises(InputError, own, lambda op=op, x=x: op @ (1j * x))
        raises(InputError, own, lambda op=op, x=x: op.domain.dot(x, 1j * x))
        mixed = x.astype(["float64", "float32", "int64"][comm.rank % 3])
        for kind in ("float16", ">f8", "bool"):
            sent = op.scatter(at_first(comm, integers(30).astype(kind)))
            assert sent.dtype == ("float64" if kind == ">f8" else "float32")
        assert op.domain.dot(mixed, mixed) == integers(30) @ integers(30)
        result = op.gather(op @ mixed)
        if comm.rank == 0:
            np.testing.assert_array_equal(result, A @ integers(30))
        y = op @ x
        other, short = (y.astype("float32"), y[:-1]) if comm.rank == last else (y, y)
        raises(RanksError, f"rank {last}: y has shape", lambda op=op, y=short: op.gather(y))
        if comm.size > 1:
            said = f"rank {last} has y of type float32: expected float64.*convert it"
            raises(RanksError, said, lambda op=op, y=other: op.gather(y))


def nothing_stays_of_an_operator(comm, folder):
    """Its matrix and its communicators go with its last use, not when somebody collects garbage."""
    A = random_matrix(30, 30, 100)
    for algorithm in algorithms(comm.size):
        op = compiled(comm, algorithm, A)
        same(comm, op, A)
        product = weakref.ref(op.product)
        along_row = op.product._along_row if algorithm == "2d" else None
        gc.disable()
        try:
            del op
            assert product() is None, algorithm
        finally:
            gc.enable()
        assert not along_row


def messages_of_the_caller_are_left_alone(comm, folder):
    """A caller that waits for any message gets its own, and one communicator of ours serves all operators."""
    A = random_matrix(30, 30, 100)
    theirs, last = comm.Dup(), comm.size - 1
    found = np.zeros(30)
    waiting = theirs.Irecv(found, last) if comm.rank == 0 else None
    ops = [compiled(theirs, algorithm, A) for algorithm in algorithms(comm.size)]
    ours = {id(op.product.comm): op.product.comm for op in ops}
    assert len(ours) == 1
    for op in ops:
        same(comm, op, A)
    if comm.rank == last:
        theirs.Send(np.full(30, 7.0), 0)
    if waiting:
        waiting.Wait()
        assert (found == 7).all()
    del op, ops
    theirs.Free()
    assert not any(ours.values())


def sums_are_those_of_whole_vectors(comm, folder):
    A = random_matrix(30, 21, 60, "complex128")
    for algorithm in algorithms(comm.size):
        op = compiled(comm, algorithm, A, "complex128")
        for space, size in ((op.domain, 21), (op.range, 30)):
            x, y = integers(size, "complex128", 1), integers(size, "complex128", 2)
            mine = [space.scatter(at_first(comm, each)) for each in (x, y)]
            assert space.dot(*mine) == np.vdot(x, y)
            assert abs(space.norm(mine[0]) - np.linalg.norm(x)) < 1e-13 * np.linalg.norm(x)
            assert space.zeros().shape == mine[0].shape


def pagerank_runs_unchanged(comm, folder):
    A = gallery("rmat", scale=6)
    A.data[:] = 1.0
    made = links(A)
    assert made.dangling.size and made.inverse_weight is not None
    here = pagerank(_local(made.matrix), made.dangling, made.inverse_weight)
    is_dangling = np.zeros(made.nodes)
    is_dangling[made.dangling] = 1.0
    for algorithm in algorithms(comm.size):
        op = compiled(comm, algorithm, made.matrix)
        inverse, own = (op.scatter(at_first(comm, x)) for x in (made.inverse_weight, is_dangling))
        found = pagerank(op, np.flatnonzero(own), inverse)
        assert (found.iterations, found.stop) == (here.iterations, "converged")
        np.testing.assert_allclose(found.residuals, here.residuals, rtol=1e-9, atol=1e-16)
        ranks = op.gather(found.ranks)
        if comm.rank == 0:
            np.testing.assert_allclose(ranks, here.ranks, rtol=1e-12)


def preconditioned_conjugate_gradients_run_unchanged(comm, folder):
    A = gallery("poisson2d", n=10)
    b = np.random.default_rng(1).uniform(-1, 1, A.shape[0])
    scale = np.linspace(0.1, 1.0, A.shape[0])
    for inverse in (None, scale):
        here = conjugate_gradients(_local(A), b, inverse)
        for algorithm in algorithms(comm.size):
            op = compiled(comm, algorithm, A)
            own = None if inverse is None else op.scatter(at_first(comm, inverse))
            found = conjugate_gradients(op, op.scatter(at_first(comm, b)), own)
            assert found.stop == here.stop == "converged"
            assert abs(found.iterations - here.iterations) <= 1  # sums are added in another order
            x = op.gather(found.x)
            if comm.rank == 0:
                np.testing.assert_allclose(x, here.x, rtol=1e-6, atol=1e-9)


def breakdowns_are_met_by_all_ranks(comm, folder):
    A = csr_array(np.diag(np.r_[np.ones(9), -1.0]))
    b = np.arange(10.0)
    op = compiled(comm, "local-1d", A)
    found = conjugate_gradients(op, op.scatter(at_first(comm, b)))
    assert found.stop == conjugate_gradients(_local(A), b).stop
    assert found.stop.startswith("breakdown in step 2: the matrix is not positive definite")


def _local(A):
    """The operator of a matrix in this process."""
    product = bind(prepared(A, "float64", 32), Candidate("csr", "plain", "cpu", "float64", 32, 1)).product
    return BlockOperator(A.shape, A.dtype, [RowProduct(0, A.shape[0], product)])


def bits_repeat(comm, folder):
    """The same bits in every product and in every run; with overlap those without."""
    A = gallery("poisson2d", n=20)
    A.data[:] = np.random.default_rng(7).normal(size=A.nnz)
    x = np.random.default_rng(8).normal(size=A.shape[0])
    found = {}
    for algorithm in algorithms(comm.size):
        op = compiled(comm, algorithm, A)
        mine = op.scatter(at_first(comm, x))
        results = [op.gather(op @ mine) for _ in range(5)]
        if comm.rank == 0:
            assert len({each.tobytes() for each in results}) == 1
            found[algorithm] = zlib.crc32(results[0].tobytes())
    if comm.rank == 0:
        assert found["local-1d"] == found["local-1d-overlap"]
    return found


def files_are_read_in_parts(comm, folder):
    """Of every symmetry; fewer lines than ranks, blank lines, and no line end at the end are lines, too."""
    files = sorted(Path(folder).glob("*.mtx"))
    assert files
    for path in files:
        whole = load(path)
        dtype = "complex128" if whole.dtype.kind == "c" else "float64"
        op = compile(str(path), configuration("local-1d", comm.size, dtype), comm)
        same(comm, op, whole)


def write_files(folder):
    """Write the files of the case before."""
    A = random_matrix(40, 40, 150, seed=3)
    symmetric = csr_array(A + A.T)
    skew = csr_array(A - A.T)
    skew.eliminate_zeros()
    hermitian = csr_array(symmetric + 1j * skew)
    named = {
        "general": (random_matrix(23, 31, 90), "general"),
        "symmetric": (symmetric, "symmetric"),
        "skew": (skew, "skew-symmetric"),
        "hermitian": (hermitian, "hermitian"),
        "few": (random_matrix(9, 9, 2), "general"),
    }
    for name, (matrix, symmetry) in named.items():
        mmwrite(Path(folder) / f"{name}.mtx", matrix, symmetry=symmetry)
    text = "%%MatrixMarket matrix coordinate pattern general\n% none\n3 4 3\n\n1 1\n  3 4 \n\n\n2 2"
    (Path(folder) / "blank.mtx").write_text(text)


def wrong_input_is_found_on_all_ranks(comm, folder):
    """Each is one line on every rank, before any product, and what comes after works."""
    A = gallery("poisson2d", n=6)
    given = at_first(comm, A)
    last = comm.size - 1
    right = configuration("local-1d", comm.size)
    parted = partition(A.shape, comm.size)
    flat = random_matrix(36, 36, 700)

    def asked(A=given, asked=right, partition=parted):
        return lambda: compile(A, asked, comm, partition)

    other = configuration("global-1d" if comm.rank == last else "local-1d", comm.size)
    changed = A.copy()
    changed.data[5] += comm.rank == last
    wrong = [
        (asked(None), "rank 0.*no matrix.*give it"),
        (asked(asked=configuration("local-1d", comm.size + 1)), "configuration for .*expected as many"),
        (asked(asked=configuration("nope", comm.size)), "algorithm 'nope' is unknown"),
        (asked(asked=configuration("local-1d", comm.size, "float16")), "dtype float16: expected one of"),
        (asked(partition=partition((9, 9), comm.size)), "partition of 9 x 9 .*expected a 1D one of 36 x 36"),
        (asked(str(Path(folder) / "missing.mtx")), "missing.mtx: there is no such file"),
        (asked(at_first(comm, flat), configuration("local-1d", comm.size, formats=("nope",) * 2)),
         "rank 0.*format 'nope' is unknown|'nope'"),
    ]  # fmt: skip
    if comm.size > 1:
        wrong += [
            (asked(asked=other), f"rank {last} has the configuration .*global-1d.*: expected .*local-1d"),
            (asked(changed), f"rank {last} has the matrix array.*expected array.*give all ranks the same"),
        ]
    if int(np.sqrt(comm.size)) ** 2 != comm.size:
        wrong.append((asked(asked=configuration("2d", comm.size)), "'uniform-2d': expected a square"))
    for call, message in wrong:
        raises(RanksError, message, call)
    op = compiled(comm, "local-1d", A)
    raises(RanksError, "x is float64 of shape", lambda: op.scatter(np.zeros(3)))
    size = op.domain.size
    said = rf"x has shape \({size + 1},\) on rank {comm.rank} of {comm.size}: expected \({size},\)"
    raises(InputError, said, lambda: op @ np.zeros(size + 1))
    same(comm, op, A)


def refused_formats_name_the_rank(comm, folder):
    """The rank whose part DIA would pad too much is named by all; it is not stored in CSR silently."""
    if comm.size == 1:
        return
    A = gallery("poisson2d", n=30).tolil()
    A[800:] = 0
    A[np.arange(800, 900), np.random.default_rng(1).permutation(900)[:100]] = 1.0
    raises(
        RanksError,
        f"rank {comm.size - 1}: DIA would",
        lambda: compiled(comm, "global-1d", csr_array(A), formats=("dia", "dia")),
    )


def raises(kind, message, call):
    try:
        call()
    except kind as error:
        assert re.search(message, str(error)), f"{error} is not {message}"
        assert "\n" not in str(error)
    else:
        raise AssertionError(f"nothing was raised: expected {message}")


CASES = {
    case.__name__: case
    for case in (
        products_are_right_in_every_type,
        products_are_right_on_awkward_shapes,
        methods_of_partitioning,
        formats_of_both_parts,
        vectors_stay_distributed,
        types_that_differ_hang_nobody,
        nothing_stays_of_an_operator,
        messages_of_the_caller_are_left_alone,
        sums_are_those_of_whole_vectors,
        pagerank_runs_unchanged,
        preconditioned_conjugate_gradients_run_unchanged,
        breakdowns_are_met_by_all_ranks,
        bits_repeat,
        files_are_read_in_parts,
        wrong_input_is_found_on_all_ranks,
        refused_formats_name_the_rank,
    )
}
