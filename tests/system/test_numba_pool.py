"""Parts of a compiled kernel: one after another, or at once on the threads of the pool."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

from sparsecast.errors import InputError
from sparsecast.system import numba_pool, thread_pool
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import equal_parts
from sparsecast.system.thread_pool import AWAKE_S, TIMES_AWAKE

LIMIT = int(numba.config.NUMBA_NUM_THREADS)

several_threads = pytest.mark.skipif(LIMIT < 2, reason="one thread needs no pool")


@numba.njit
def _add_number(part, scale, values, sizes, starts):
    for i in range(starts[part], starts[part + 1]):
        values[i] += scale * (part + len(sizes))


@numba.njit
def _add_ten(part, values, starts):
    values[starts[part] : starts[part + 1]] += 10


@numba.njit
def _kernel(scale, sizes, values, starts, pool):
    each_part(_add_number, (scale, values, sizes, starts), pool)
    each_part(_add_ten, (values, starts), pool)


@pytest.mark.parametrize("dtype", ("uint32", "uint64", "int64"))
def test_each_part_is_done_once_with_its_number(dtype):
    for parts in {1, LIMIT}:
        starts = equal_parts(1000, parts).astype(dtype)
        values = np.zeros(1000)
        share(_kernel, (100.0, (0, 0)), starts)(values)
        lengths = np.diff(starts).tolist()
        assert values.tolist() == [
            10 + 100 * (part + 2) for part in range(parts) for _ in range(lengths[part])
        ]


def test_more_parts_than_threads_are_refused():
    with pytest.raises(InputError):
        share(_kernel, (), np.arange(LIMIT + 2))


@several_threads
def test_the_pool_has_one_caller_at_a_time_and_the_others_get_the_same():
    inside, running = threading.Lock(), []

    def kernel(array, starts, pool):
        if pool:
            assert inside.acquire(blocking=False), "two callers in the pool"
            time.sleep(0.002)
            inside.release()
        running.append("pool" if pool else "alone")
        return array.sum()

    product = share(kernel, (np.arange(10),), equal_parts(10, 2))
    with ThreadPoolExecutor(6) as callers:
        found = list(callers.map(lambda _: product(), range(60)))
    assert found == [45] * 60
    assert set(running) == {"pool", "alone"}


@numba.njit
def _count(part, rounds, sums, starts):
    total = np.uint64(1)
    for i in range(rounds[part]):
        total = total * np.uint64(3) + np.uint64(i)
    sums[part] += total


@numba.njit(nogil=True)
def _counts(rounds, sums, starts, pool):
    each_part(_count, (rounds, sums, starts), pool)


def _counting(rounds):
    """Return a call of parts that take about a nanosecond a round, and what they have added up."""
    sums = np.zeros(len(rounds), dtype=np.uint64)
    call = share(_counts, (np.array(rounds), sums), np.arange(len(rounds) + 1))
    call()
    return call, sums


@several_threads
@pytest.mark.parametrize("pause_s", (0.0, AWAKE_S / 2, AWAKE_S, 2 * TIMES_AWAKE * AWAKE_S))
@pytest.mark.parametrize("rounds", ([0] * LIMIT, range(100, 100 * LIMIT + 1, 100), [30_000] * LIMIT))
def test_threads_do_each_part_once_awake_and_asleep(pause_s, rounds):
    call, once = _counting(rounds)
    once, times = once.copy(), 300
    call, sums = _counting(rounds)
    for _ in range(times):
        call()
        time.sleep(pause_s)
    assert (sums == once * np.uint64(times + 1)).all()


@several_threads
@pytest.mark.parametrize("missing", ("sched_yield", "sched_getcpu"))
def test_threads_do_each_part_once_where_the_system_lacks_a_function(monkeypatch, missing):
    present = {place: name for place, name in thread_pool._FUNCTIONS.items() if name != missing}
    monkeypatch.setattr(thread_pool, "_FUNCTIONS", present)
    monkeypatch.setattr(thread_pool, "_of_process", thread_pool._OfProcess())
    test_threads_do_each_part_once_awake_and_asleep(rounds=[1000] * LIMIT, pause_s=5 * AWAKE_S)


@several_threads
def test_nobody_computes_while_he_waits_for_long():
    call, _ = _counting([20_000_000 if part else 200_000 for part in range(2)])
    call()  # the thread is awake, and takes the long part before the caller is free
    start, start_cpu = time.perf_counter(), time.process_time()
    call()
    assert time.process_time() - start_cpu < 1.5 * (time.perf_counter() - start) + 0.01
    start_cpu = time.process_time()
    time.sleep(0.1)
    assert time.process_time() - start_cpu < 0.05


@several_threads
def test_parts_of_threads_that_never_come_are_done_by_the_caller(monkeypatch):
    monkeypatch.setattr(thread_pool.ThreadPool, "start", lambda self, threads: None)
    monkeypatch.setattr(numba_pool, "thread_pool", thread_pool.ThreadPool)
    test_each_part_is_done_once_with_its_number("int64")


@several_threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_a_pool_of_its_own():
    call, sums = _counting([1000, 1000])
    child = os.fork()
    if child == 0:
        before = sums.copy()
        for _ in range(100):
            call()
        os._exit(int(threading.active_count() == 2 and (sums == before * np.uint64(101)).all()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


@several_threads
def test_callers_with_more_threads_than_cores_until_the_process_ends():
    script = """
import threading
import numpy as np, numba
from scipy.sparse import csr_array, eye_array
import sparsecast
from sparsecast.measuring.references import memory_read
from sparsecast.devices import DEVICES
from sparsecast.formats import FORMATS
A = csr_array(eye_array(20_000))
product = DEVICES.get("cpu").kernels.get("csr").bind(FORMATS.get("csr").from_csr(A), "plain", 6)
x, y = np.ones(20_000), np.empty(20_000)
read = memory_read(80_000, 6)
read(); product(x, y)
def repeat(call):
    for _ in range(1000):
        call()
def right():
    out = y.copy()
    product(x, out)
    assert (out == 1).all()
calls = read, read, right
threads = [threading.Thread(target=repeat, args=(each,)) for each in calls]
[each.start() for each in threads]
[each.join() for each in threads]
"""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "6"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, timeout=300)
    assert (done.returncode, done.stderr[-500:]) == (0, b"")


def test_callers_that_come_at_once_get_one_pool(monkeypatch):
    monkeypatch.setattr(thread_pool, "_of_process", thread_pool._OfProcess())
    with ThreadPoolExecutor(8) as callers:
        pools = set(callers.map(lambda _: thread_pool.thread_pool(), range(64)))
    assert len(pools) == 1
