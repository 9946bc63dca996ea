"""Operators that adapt: always the right product, CSR unless something is faster, costs within a budget."""

import math
import threading
import time

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

import sparsecast as sc
from sparsecast.devices.binding import Bound
from sparsecast.errors import InputError, MatrixSizeError
from sparsecast.planning import adapting
from sparsecast.planning.adapting import HORIZON, SHORT_S, Adapting
from sparsecast.planning.trials import LOST_SHARE, Contest
from sparsecast.records import Candidate, Forecast


class Made:
    """A matrix of one row on a made-up clock: what each format takes, to build and for a product."""

    def __init__(self, monkeypatch, takes, converts, forecasts):
        self.now_s, self.built, self.products = 0.0, [], []
        self.takes, self.converts, self.product_of = takes, converts, {}
        monkeypatch.setattr(adapting, "perf_counter", lambda: self.now_s)
        named = {name: Candidate(name, "plain", "cpu", "float64", 32, 1) for name in takes}

        def options(csr_s):
            assert csr_s == pytest.approx(takes["csr"])
            return [
                Forecast(named[name], 1, time_s, None, high_s, 0, None, convert_s)
                for name, (time_s, high_s, convert_s) in forecasts.items()
            ]

        def build(candidate):
            name = candidate.format
            self.built.append((name, len(self.products)))
            self.now_s += self.converts.get(name, 0.0)
            if self.takes[name] is None:
                raise MatrixSizeError("too large")

            def product(x, out):
                self.products.append(name)
                self.now_s += self.takes[name]
                out[:] = x

            self.product_of[name] = product
            return Bound(None, product)

        self.block = Adapting(named["csr"], options, build, lambda candidate: 0.0, 1)

    def run(self, products):
        """Do some products; return their seconds."""
        before, x, out = self.now_s, np.ones(1), np.zeros(1)
        for _ in range(products):
            self.block.product(x, out)
        return self.now_s - before


def test_a_much_faster_format_is_found_early_and_kept(monkeypatch):
    made = Made(monkeypatch, {"csr": 1.0, "sell": 0.5}, {"sell": 10.0}, {"sell": (0.5, 0.6, 10.0)})
    assert made.run(HORIZON) <= 1.03 * (10.0 + 0.5 * HORIZON)
    [trial] = made.block.tried
    assert trial.is_kept and trial.time_s == 0.5 and trial.other_s == 1.0 and trial.convert_s == 10.0
    assert made.block.kept.format == "sell" and set(made.products[-900:]) == {"sell"}


def test_nothing_is_converted_before_the_products_would_have_saved_the_cost(monkeypatch):
    made = Made(monkeypatch, {"csr": 1.0, "sell": 0.5}, {"sell": 10.0}, {"sell": (0.5, 0.6, 10.0)})
    made.run(19)
    assert [name for name, _ in made.built] == ["csr"]
    made.run(10)
    assert [name for name, _ in made.built] == ["csr", "sell"] and made.built[1][1] >= 20


@pytest.mark.parametrize("truth", (1.05, 1.5, 4.0))
@pytest.mark.parametrize(
    ("convert_s", "high_s"), [(1.0, None), (1.0, 0.6), (8.0, None), (8.0, 0.99), (8.0, 0.6), (300.0, None)]
)
def test_a_wrong_forecast_costs_little(monkeypatch, truth, convert_s, high_s):
    takes = {"csr": 1.0, "sell": truth, "jad": truth}
    forecasts = {"sell": (0.7, high_s, convert_s), "jad": (0.8, high_s, convert_s)}
    converts = {"sell": convert_s, "jad": convert_s}
    made = Made(monkeypatch, takes, converts, forecasts)
    assert made.run(HORIZON) <= (1 + LOST_SHARE + 0.02) * HORIZON
    assert made.block.kept.format == "csr" and not any(trial.is_kept for trial in made.block.tried)


def test_what_pays_too_late_is_not_waited_for(monkeypatch):
    for csr_s, cost in ((1.0, 1e5), (SHORT_S / 2, 1.0)):
        option = 0.5 * csr_s, None, cost * csr_s
        made = Made(monkeypatch, {"csr": csr_s, "sell": 0.5 * csr_s}, {"sell": option[2]}, {"sell": option})
        assert made.run(HORIZON) == pytest.approx(HORIZON * csr_s) and len(made.built) == 1
        assert made.block.product == made.product_of["csr"]  # nothing is counted any more
    late = Made(monkeypatch, {"csr": 1.0, "sell": 0.5}, {"sell": 20.0}, {"sell": (0.5, None, 20.0)})
    late.run(5 * HORIZON)
    name, after = late.built[1]
    assert name == "sell" and 20.0 / LOST_SHARE <= after < 5 * HORIZON


def test_of_two_the_one_that_is_worth_it_first_is_tried_first(monkeypatch):
    takes, unsure = {"csr": 1.0, "sell": 0.6, "jad": 0.5}, (0.5, 3.0, 20.0)
    made = Made(monkeypatch, takes, {"sell": 4.0, "jad": 20.0}, {"jad": unsure, "sell": (0.6, 0.8, 4.0)})
    made.run(100)
    assert [trial.candidate.format for trial in made.block.tried] == ["sell"]


def test_of_two_the_better_is_kept_and_what_cannot_be_built_is_named(monkeypatch):
    takes = {"csr": 1.0, "ell": None, "sell": 0.6, "jad": 0.3}
    converts = {"ell": 1.0, "sell": 2.0, "jad": 2.0}
    made = Made(monkeypatch, takes, converts, {"sell": (0.5, 0.7, 2.0), "jad": (0.45, 0.7, 2.0)})
    made.run(HORIZON)
    assert [(t.candidate.format, t.is_kept) for t in made.block.tried] == [("jad", True)]
    made = Made(monkeypatch, takes, converts, {"ell": (0.2, 0.3, 1.0), "sell": (0.5, 0.7, 2.0)})
    made.run(HORIZON)
    assert [t.time_s for t in made.block.tried] == [
        None,
        pytest.approx(0.6),
    ] and made.block.kept.format == "sell"


def test_products_between_trials_can_be_taken_as_done(monkeypatch):
    settings = {"csr": 1.0, "sell": 0.5}, {"sell": 10.0}, {"sell": (0.5, 0.6, 10.0)}
    done = Made(monkeypatch, *settings)
    done.run(HORIZON)
    taken, skipped = Made(monkeypatch, *settings), 0
    while not taken.block.is_settled:
        taken.run(1)
        count, seconds = taken.block.skip(3)
        assert count <= 3 and seconds == count * 1.0
        skipped += count
    assert skipped > 0 and taken.block.kept == done.block.kept
    assert taken.built[1][1] + skipped == done.built[1][1]
    assert taken.block.skip(3)[0] == 0


@pytest.fixture
def eager(monkeypatch):
    """Let every cost be paid at once, so that small matrices adapt too, and any format win."""
    monkeypatch.setattr(adapting, "SHORT_S", 0.0)
    monkeypatch.setattr(
        Contest, "pays_from", lambda self, option, least=0: 0 if len(self.tried) < 2 else math.inf
    )
    monkeypatch.setattr(Contest, "rank", lambda self, option, products: -option.time_s)
    monkeypatch.setattr(adapting, "HOPELESS", 1e9)


@pytest.mark.parametrize("name", ("circuit", "poisson2d", "helmholtz2d", "random"))
def test_every_product_is_right_while_it_adapts(own_complex, eager, name):
    A = sc.gallery(name, **({"n": 40} if "2d" in name else {"n": 900}))
    op = sc.compile(A, threads=1, adapt=True)
    assert isinstance(op, LinearOperator) and op.kept.format == "csr"
    generator = np.random.default_rng(0)
    for _ in range(80):
        x = generator.normal(size=A.shape[1]).astype(A.dtype)
        np.testing.assert_allclose(op @ x, A @ x, rtol=1e-12, atol=1e-12)
        y = generator.normal(size=A.shape[0])
        np.testing.assert_allclose(op.rmatvec(y), A.conj().T @ y, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(op.T @ y, A.T @ y, rtol=1e-12, atol=1e-12)
    X = generator.normal(size=(A.shape[1], 3))
    np.testing.assert_allclose(op @ X, A @ X, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(op.H @ X, A.conj().T @ X, rtol=1e-12, atol=1e-12)
    assert 0 < len(op.tried) <= 2
    kept = [trial.candidate.format for trial in op.tried if trial.is_kept]
    assert op.kept.format == (kept or ["csr"])[-1]
    assert f"Products are done in {op.kept.format.upper()}." in op.describe()
    for trial in op.tried:
        assert trial.is_kept == (trial.time_s < trial.other_s)


def test_threads_may_use_it_at_once_while_it_adapts(own_complex, eager, monkeypatch):
    A = sc.gallery("circuit", n=2000)
    op = sc.compile(A, threads=1, adapt=True)
    x = np.random.default_rng(0).normal(size=2000)
    expected, wrong = A @ x, []
    scheduled = Adapting._trial

    def slow(self, *asked):
        time.sleep(0.05)  # the others go on meanwhile
        return scheduled(self, *asked)

    monkeypatch.setattr(Adapting, "_trial", slow)

    def use():
        wrong.extend(1 for _ in range(200) if not np.allclose(op @ x, expected, rtol=1e-12, atol=1e-12))

    users = [threading.Thread(target=use) for _ in range(4)]
    for each in users:
        each.start()
    for each in users:
        each.join()
    assert not wrong and op.tried


@pytest.mark.parametrize("shape", ((0, 5), (7, 5), (5, 0)))
def test_a_matrix_without_entries(own_complex, eager, shape):
    op = sc.compile(csr_array(shape), threads=1, adapt=True)
    for _ in range(60):
        assert not (op @ np.ones(shape[1])).any()


def test_what_cannot_adapt_is_refused(own_complex):
    A = sc.gallery("banded", n=50)
    made = sc.plan(A, threads=1)
    for wrong in ({"plan": made}, {"transpose": made}):
        with pytest.raises(InputError):
            sc.compile(A, threads=1, adapt=True, **wrong)
    with pytest.raises(InputError):
        sc.compile(A, adapt=True, device="cuda")
