"""Parts of a compiled kernel: one after another, or at once in Numba's pool of threads."""

from __future__ import annotations

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
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import equal_parts

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
@pytest.mark.parametrize("parts", (1, pytest.param(LIMIT, marks=several_threads)))
def test_each_part_is_done_once_with_its_number(parts, dtype):
    starts = equal_parts(1000, parts).astype(dtype)
    values = np.zeros(1000)
    share(_kernel, (100.0, (0, 0)), starts)(values)
    expected = [10 + 100 * (part + 2) for part in range(parts) for _ in range(starts[part], starts[part + 1])]
    assert values.tolist() == expected


def test_more_parts_than_threads_are_refused():
    with pytest.raises(InputError):
        share(_kernel, (), np.arange(LIMIT + 2))


@several_threads
def test_the_pool_has_one_caller_at_a_time_and_the_others_get_the_same():
    inside, running = threading.Lock(), []

    def kernel(array, starts, pool):
        if pool:
            assert inside.acquire(blocking=False), "two callers in Numba's pool"
            time.sleep(0.002)
            inside.release()
        running.append("pool" if pool else "alone")
        return array.sum()

    product = share(kernel, (np.arange(10),), equal_parts(10, 2))
    with ThreadPoolExecutor(6) as callers:
        found = list(callers.map(lambda _: product(), range(60)))
    assert found == [45] * 60
    assert set(running) == {"pool", "alone"}


@several_threads
def test_a_measurement_and_a_product_use_numbas_pool_at_once():
    """Without the lock, Numba's fallback layer ends the process: tried in a process of its own."""
    script = """
import threading
import numpy as np, numba
from scipy.sparse import csr_array, eye_array
import sparsecast
from sparsecast.measuring.memory_read import memory_read
from sparsecast.devices import DEVICES
from sparsecast.formats import FORMATS
A = csr_array(eye_array(20_000))
product = DEVICES.get("cpu").kernels.get("csr").bind(FORMATS.get("csr").from_csr(A), "plain", 2)
x, y = np.ones(20_000), np.empty(20_000)
read = memory_read(80_000, 2)
read(); product(x, y)
def repeat(call):
    for _ in range(3000):
        call()
calls = read, read, lambda: product(x, y.copy())
threads = [threading.Thread(target=repeat, args=(each,)) for each in calls]
[each.start() for each in threads]
[each.join() for each in threads]
"""
    environment = {**os.environ, "NUMBA_THREADING_LAYER": "workqueue"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr[-500:]
