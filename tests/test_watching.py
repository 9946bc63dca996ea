"""Products of programs with SciPy are counted by matrix, and planned ones are SciPy's within rounding."""

import gc
import threading
import weakref
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator, cg, eigsh

import sparsecast as sc
from sparsecast.api import executing, watching
from sparsecast.errors import InputError, WrongResultError
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import Profile
from sparsecast.operators import scipy_products
from sparsecast.operators.scipy_products import ProductCounter, counted_by
from sparsecast.operators.unchanged import Unchanged, reads_noted
from sparsecast.results.watching import Saving

N = 40
X = np.arange(1.0, N + 1)


def matrix(kind=sp.csr_array):
    return kind(sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(N, N)))


def counted(work):
    counter = ProductCounter()
    with counted_by(counter):
        work()
    return counter.counted()


@pytest.mark.parametrize(
    "kind", [sp.csr_array, sp.csc_matrix, sp.bsr_array, sp.coo_array, sp.dia_matrix, sp.csr_matrix]
)
def test_each_way_to_multiply_is_one_product(kind):
    A = matrix(kind)
    expected = A.toarray() @ X
    ways = [lambda: A @ X, lambda: A.dot(X), lambda: A._matmul_vector(X), lambda: (A @ X[:, None])[:, 0]]
    ways.append(lambda: aslinearoperator(A).matvec(X))
    for way in ways:
        [seen] = counted(lambda way=way: np.testing.assert_allclose(way(), expected))
        assert (seen.products, seen.kind.nnz, seen.kind.vectors) == (1, A.nnz, 1)
        assert seen.kind.place.startswith("test_watching.py:")


def test_solvers_are_seen_and_scipy_is_as_before_afterwards():
    A, before = matrix(), sp.csr_array.__matmul__
    plain = vars(sp.csr_array.__mro__[2]).get("_matmul_vector"), type(A)._matmul_vector
    by_cg = counted(lambda: cg(A, X))
    by_eigsh = counted(lambda: eigsh(A, k=2))
    assert by_cg[0].products > 5 and by_eigsh[0].products > 5
    assert plain[1] is type(A)._matmul_vector and before is sp.csr_array.__matmul__


def test_several_vectors_and_types_are_apart():
    A = matrix()
    seen = counted(lambda: (A @ X, A @ np.ones((N, 3)), A @ X.astype(np.float32), A @ np.ones((N, 3))))
    assert {(each.kind.vectors, each.kind.vector_dtype): each.products for each in seen} == {
        (1, "float64"): 1,
        (3, "float64"): 2,
        (1, "float32"): 1,
    }


def test_a_transpose_shares_the_arrays_of_its_matrix():
    A = matrix()
    seen = counted(lambda: [A.T @ X for _ in range(3)])
    assert [(each.kind.format, each.is_transposed, each.products) for each in seen] == [("csc", True, 3)]
    seen = counted(lambda: [X @ A for _ in range(3)])
    assert [(each.is_transposed, each.products) for each in seen] == [(True, 3)]
    own = matrix(sp.csc_array)
    assert [each.is_transposed for each in counted(lambda: [own @ X for _ in range(3)])] == [False]


def test_matrices_of_one_kind_are_added_up_when_they_are_gone():
    def steps():
        for step in range(5):
            A = matrix() * (1.0 + step)
            A @ X
            A @ X
            del A
            gc.collect(1)

    [seen] = [each for each in counted(steps) if each.kind.format == "csr"]
    assert (seen.matrices, seen.products) == (5, 10)


def test_of_matrices_of_one_kind_the_last_one_is_kept(monkeypatch):
    monkeypatch.setattr(scipy_products, "KEPT_S", 0.0)
    alive, counter = [], ProductCounter()
    with counted_by(counter):
        for step in range(4):
            A = sp.csr_array(matrix() * (1.0 + step))
            alive.append(weakref.ref(A))
            for _ in range(3):
                A @ X
        del A
    gc.collect(1)
    assert [each() is not None for each in alive] == [False, False, False, True]
    [seen] = [each for each in counter.counted() if each.kind.format == "csr"]
    assert (seen.matrices, seen.products, seen.matrix) == (4, 12, alive[-1]())


def test_changed_values_are_seen():
    A = matrix()

    def work():
        A @ X
        A.data[:] *= 2
        A @ X

    assert [each.has_changed for each in counted(work)] == [True]
    assert [each.has_changed for each in counted(lambda: (A @ X, A @ X, A @ X))] == [False]


def test_threads_lose_no_product():
    A = matrix()

    def work():
        threads = [threading.Thread(target=lambda: [A @ X for _ in range(500)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert [each.products for each in counted(work)] == [2000]


def test_a_watch_within_a_watch_is_refused_and_the_first_goes_on():
    A = matrix()
    with sc.watch() as seen:
        A @ X
        with pytest.raises(InputError), sc.watch():
            pass
        A @ X
    assert [row.counted.products for row in seen.seen().products] == [2]
    with pytest.raises(ZeroDivisionError), sc.watch() as seen:
        A @ X
        raise ZeroDivisionError
    assert len(seen.seen().products) == 1
    with sc.watch() as seen, pytest.raises(InputError):
        seen.planned()
    assert seen.planned().products == ()


def test_what_was_seen_does_not_change_when_more_is_counted():
    A, x = sc.gallery("poisson2d", n=8), np.ones(64)
    with sc.watch() as watched:
        A @ x
        before = watched.seen().products[0].counted
        A @ x
    assert (before.products, watched.seen().products[0].counted.products) == (1, 2)


CHANGES = {
    "an entry of the values": lambda A, held: A.data.__setitem__(3, 9.0),
    "values that the program holds": lambda A, held: held.__setitem__(3, 9.0),
    "an entry": lambda A, held: A.__setitem__((3, 3), 9.0),
    "a column": lambda A, held: A.indices.__setitem__(0, 5),
    "other values": lambda A, held: setattr(A, "data", np.arange(float(A.nnz))),
    "all values": lambda A, held: A.__imul__(2.0),
    "a NaN": lambda A, held: A.data.__setitem__(0, np.nan),
    "zeros": lambda A, held: (A.data.__setitem__(0, 0.0), A.eliminate_zeros()),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("holds", [False, True])
def test_no_change_of_a_matrix_goes_unseen(change, holds):
    A = matrix()
    held = A.data if holds or "holds" in change else None
    with reads_noted():
        unchanged = Unchanged(A)
        assert unchanged.holds(A)
        np.testing.assert_array_equal(A.T @ A.data[3 : 3 + N], A.toarray().T @ A.data[3 : 3 + N])
        assert unchanged.holds(A)
        CHANGES[change](A, held)
        assert not unchanged.holds(A)
    np.testing.assert_array_equal(A @ X, A.toarray() @ X)


@pytest.mark.parametrize("is_held_before", [False, True])
@pytest.mark.parametrize("part", [slice(None), slice(3, 5)])
def test_who_holds_an_array_while_it_is_compared_may_write_later(is_held_before, part):
    A = matrix()
    held = A.data[part] if is_held_before else None
    with reads_noted():
        unchanged = Unchanged(A)
        held = A.data[part] if held is None else held
        assert unchanged.holds(A)
        held *= 2.0
        del held
        assert not unchanged.holds(A)


def test_a_thread_that_reads_before_the_comparison_may_write_after_it():
    A, is_read, is_compared = matrix(), threading.Event(), threading.Event()

    def write():
        held = A.data
        is_read.set()
        is_compared.wait(10)
        held *= 2.0

    with reads_noted():
        unchanged, thread = Unchanged(A), threading.Thread(target=write)
        thread.start()
        assert is_read.wait(10) and unchanged.holds(A)
        is_compared.set()
        thread.join()
        assert not unchanged.holds(A)


def test_a_change_is_seen_in_each_comparison_of_a_matrix():
    A = matrix()
    with reads_noted():
        plans = Unchanged(A), Unchanged(A)
        assert [unchanged.holds(A) for unchanged in 2 * plans] == 4 * [True]
        A.data[:] *= 2.0
        assert [unchanged.holds(A) for unchanged in 2 * plans] == 4 * [False]


def test_a_matrix_that_is_left_alone_is_compared_once(monkeypatch):
    A, compared, equal = sp.csr_array(matrix().toarray()), [], np.array_equal
    monkeypatch.setattr(np, "array_equal", lambda *arrays: compared.append(1) or equal(*arrays))
    with reads_noted():
        unchanged = Unchanged(A)
        counter = ProductCounter(lambda *asked: lambda other, x: X if unchanged.holds(other) else None, 0.0)
        monkeypatch.setattr(scipy_products, "ASKED_FROM", 9)
        with counted_by(counter):
            assert [(A @ X) is X for _ in range(17)] == 9 * [False] + 8 * [True]
    assert len(compared) == 3  # as SciPy read the arrays for the first product


@pytest.fixture
def own(recorded, data_folder, monkeypatch):
    """The profile of this machine; products of any length are planned."""
    monkeypatch.setattr(watching, "APPLIED_FROM_S", 1e-5)
    for module in (watching, scipy_products):
        monkeypatch.setattr(module, "KEPT_S", 0.0)
    monkeypatch.setattr(scipy_products, "ASKED_FROM", 1)
    return Profile(detect(), recorded.records, recorded.matrices)


def test_planned_products_are_those_of_scipy_and_follow_changes(own):
    A = sc.gallery("poisson2d", n=60)
    x = np.ones(A.shape[1])

    with sc.watch(apply=True, profile=own, threads=1, anyway=True) as seen:
        for scale in (1.0, 2.0):
            A.data[:] = scale * np.abs(A.data)
            for _ in range(30):
                y = A @ x
            np.testing.assert_allclose(y, A.toarray() @ x, rtol=1e-12)
    result = seen.seen()
    [row] = result.products
    assert row.counted.products == 60 and 0 < row.counted.replaced < 60
    assert row.counted.has_changed and result.error < 1e-14
    assert row.plan is not None and row.planning_s > 0
    done = row.counted
    in_scipy_s = (done.time_s - done.replaced_s) / (60 - done.replaced) * done.replaced
    assert result.saving.time_s == pytest.approx(in_scipy_s - done.replaced_s - done.planning_s)


def test_no_planned_product_is_of_values_that_were_held_and_changed(own):
    A = sc.gallery("poisson2d", n=60)
    x = np.ones(A.shape[1])
    expected = A @ x
    with sc.watch(apply=True, profile=own, threads=1, anyway=True) as seen:
        for _ in range(20):
            A @ x
        held, y = A.data, A @ x
        np.testing.assert_allclose(y, expected)
        held *= 0.5
        del held
        np.testing.assert_allclose(A @ x, 0.5 * expected)
    [row] = seen.seen().products
    assert 0 < row.counted.replaced < 22 and row.unplanned == ""


@pytest.mark.parametrize("vectors", [1, 3])
def test_each_way_is_compared_with_scipy_before_the_program_has_its_products(own, monkeypatch, vectors):
    built = []

    def wrong(bound, candidate):
        built.append(candidate)
        return bound._replace(product=_doubled(bound.product), multivector=_doubled(bound.multivector))

    monkeypatch.setattr(executing, "bind", lambda A, c, bind=executing.bind: wrong(bind(A, c), c))
    A, x = sc.gallery("poisson2d", n=60), np.ones((3600, vectors))
    with sc.watch(apply=True, profile=own, threads=1, anyway=True) as seen:
        products = [A @ x for _ in range(20)]
    [row] = seen.seen().products
    assert row.unplanned and row.counted.replaced == 0 and len(built) > 1
    assert all(np.array_equal(y, A @ x) for y in products)


def _doubled(product):
    def doubled(x, out):
        product(x, out)
        out *= 2.0

    return doubled


def test_what_is_slower_than_scipy_is_dropped_for_good(monkeypatch):
    A, asked, now = matrix(), [], [0.0]
    monkeypatch.setattr(scipy_products, "ASKED_FROM", 4)
    monkeypatch.setattr(scipy_products, "perf_counter", lambda: now[0])  # SciPy's products take no time

    def slow(A, x):
        now[0] += 1e-3
        return X

    counter = ProductCounter(lambda *_: asked.append(1) or slow, 0.0)
    with counted_by(counter):
        for _ in range(40):
            A @ X
    [seen] = counter.counted()
    assert asked == [1] and 4 <= seen.replaced < 20 and seen.is_slower


def _failing(error):
    def adapting(*_):
        raise error

    return adapting


REASONS = {
    "format": {"format": "coo"},
    "too few": {"from_s": 1e9},
    "memory": {"takes_little": False, "notes": 1},
    "input": {"error": InputError("a reason"), "notes": 1},
    "fault": {"error": KeyError("x"), "notes": 1},
    "wrong": {"error": WrongResultError("a reason"), "notes": 1},
}


@pytest.mark.parametrize("name", REASONS)
def test_a_row_without_a_plan_has_a_reason(own, monkeypatch, capfd, name):
    reason = REASONS[name]
    monkeypatch.setattr(watching, "APPLIED_FROM_S", reason.get("from_s", 1e-5))
    monkeypatch.setattr(watching, "takes_little", lambda _: reason.get("takes_little", True))
    A = sc.gallery("poisson2d", n=60).asformat(reason.get("format", "csr"))
    x = np.ones(A.shape[1])
    with sc.watch(apply=True, profile=own, threads=1, anyway=True) as seen:
        if "error" in reason:
            monkeypatch.setattr(watching, "adapting", _failing(reason["error"]))
        for _ in range(20):
            A @ x
    result = seen.seen()
    [row] = result.products
    assert row.plan is None and row.unplanned and row.counted.replaced == 0
    assert len(result.notes) == reason.get("notes", 0)
    assert ("Traceback" in capfd.readouterr().err) == (name in ("fault", "wrong"))


def test_the_profile_of_another_machine_tells_nothing_of_a_program_here(recorded):
    other = replace(recorded, machine=replace(recorded.machine, processor="another"))
    with pytest.raises(InputError), sc.watch(apply=True, profile=other, anyway=True):
        pass


def test_savings_are_what_a_plan_takes_less_than_scipy_took(own):
    A = sc.gallery("poisson2d", n=60)
    x, gone = np.ones(A.shape[1]), sc.gallery("poisson2d", n=50).astype(np.float32)
    with sc.watch() as seen:
        for _ in range(40):
            A @ x
        gone @ np.ones(gone.shape[1])
    facts, planned = seen.seen(), seen.planned(own, threads=1, anyway=True)
    assert facts.saving is None
    row = next(each for each in planned.products if each.counted.kind.dtype == "float64")
    assert row.plan and row.plan_s > 0 and row.scipy_s > 0 and row.planning_s > 0
    assert 0 <= row.saving.low_s <= row.saving.time_s <= row.saving.high_s
    assert planned.saving.time_s == row.saving.time_s
    other = next(each for each in planned.products if each is not row)
    assert other.plan is None and "float32" in other.unplanned and other.saving is None
    assert "first at" in planned.to_markdown() and len(planned.to_csv().splitlines()) == 3


def test_a_saving_has_the_plan_paid_and_tells_from_when_it_pays():
    saving = Saving.forecast(110, 10, (1.0, 0.5, 2.0), 150.25)
    assert (saving.time_s, saving.low_s, saving.high_s, saving.pays_from) == (0.0, 0.0, 49.75, 161)
    assert Saving.forecast(110, 10, (-1.0, -2.0, 0.0), 1.0) == Saving(0.0, 0.0, 0.0, None)


def test_what_is_no_refusal_of_a_matrix_is_raised_from_plans_and_hidden_from_a_program(own, monkeypatch):
    def fails(*_args, **_named):
        raise ArithmeticError("not of this matrix")

    A = sc.gallery("poisson2d", n=60)
    x = np.ones(A.shape[1])
    with sc.watch() as seen:
        for _ in range(2000):
            A @ x
    monkeypatch.setattr(watching._Ways, "_operator", fails)
    with pytest.raises(ArithmeticError):
        seen.planned(own, threads=1, anyway=True)
