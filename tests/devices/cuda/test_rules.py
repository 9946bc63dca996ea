"""What is known of the CUDA kernels without a GPU library: which there are, and which one a matrix gets."""

import subprocess
import sys
from dataclasses import replace

import pytest

from sparsecast.devices import DEVICES
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import detect

from ...conftest import left_packed


def gpu_of(threads):
    gpu = GPU("of few threads", 1, threads // 4, 4, 128, 1 << 30, 1 << 12, 1, 1)
    return replace(detect(), device="cuda", gpu=gpu)


def chosen(A, machine=None):
    kernels = DEVICES.get("cuda").kernels.get("csr")
    blocks = RowBlocks.of(structure(A, threads=1))
    return kernels.variants[int(kernels.choose(blocks, machine or gpu_of(400), "float64")[0])]


@pytest.mark.parametrize(
    ("length", "variant"),
    [
        (0, "scalar"),
        (3, "scalar"),
        (4, "vector2"),
        (7, "vector2"),
        (8, "vector4"),
        (27, "vector8"),
        (29, "vector16"),
        (56, "vector16"),
        (57, "vector32"),
        (500, "vector32"),
    ],
)
def test_csr_takes_a_thread_for_three_and_a_half_entries_of_a_row_at_most(length, variant):
    assert chosen(left_packed([length] * 100, max(length, 1))) == variant


@pytest.mark.parametrize(("longest", "variant"), [(64, "scalar"), (65, "adaptive")])
def test_csr_adapts_where_a_thread_would_take_more_than_64_entries_of_a_row(longest, variant):
    A = left_packed([3] * 500 + [longest] + [3] * 499, 300)
    # Of a GPU with 40 threads, 65 entries are less than four even shares.
    assert chosen(A, gpu_of(40)) == "scalar" and chosen(A, gpu_of(400)) == variant


def script(text):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_rules_need_no_gpu_library_and_binding_names_the_extra_that_brings_it():
    out = script(
        "import sys; sys.modules['numba_cuda'] = None\n"
        "import numpy as np\n"
        "from scipy.sparse import csr_array\n"
        "from sparsecast.errors import DeviceError\n"
        "from sparsecast.machines.machine import detect\n"
        "from sparsecast.devices.binding import bind\n"
        "from sparsecast.devices.target import Target\n"
        "from sparsecast.devices.target import whole_matrix\n"
        "from sparsecast.features.analysis import structure\n"
        "A = csr_array(np.kron(np.eye(20), np.ones((2, 2))))\n"
        "choice = whole_matrix(structure(A), Target('cuda', 'float64', 32, 1), detect())\n"
        "assert not [name for name in sys.modules if name.startswith(('numba.cuda', 'cuda'))]\n"
        "for candidate in choice.candidates:\n"
        "    try:\n"
        "        bind(A, candidate)\n"
        "    except DeviceError as error:\n"
        "        print(candidate.format, error)\n"
    )
    lines = out.splitlines()
    # In full storage and, where a format has it, in narrow storage.
    assert list(dict.fromkeys(line.split()[0] for line in lines)) == DEVICES.get("cuda").kernels.names()
    assert all("pip install 'sparsecast[gpu]'" in line for line in lines)


def test_names_of_the_kernels_import_no_gpu_library():
    script(
        "import sys; from sparsecast.devices import DEVICES\n"
        "assert DEVICES.get('cuda').kernels.names()\n"
        "assert not [name for name in sys.modules if name.startswith(('numba.cuda', 'cuda'))]\n"
    )
