"""Every CUDA kernel compiled for sm_90, and what a launch hands on; neither needs a GPU or its driver."""

import importlib.util
import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.devices.binding import prepared
from sparsecast.devices.gpu import launching
from sparsecast.formats import FORMATS
from sparsecast.matrices.gallery import gallery

from ...conftest import narrow_storages

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None or launching.SIMULATED,
    reason="numba-cuda, which compiles the kernels, is missing or simulates",
)

CUDA = DEVICES.get("cuda").kernels
KERNEL_NAMES = [(name, variant) for name in CUDA.names() for variant in CUDA.get(name).variants]
NARROW = [kernel for kernel in KERNEL_NAMES if CUDA.get(kernel[0]).reads_narrow]
TYPES = [(dtype, bits) for dtype in ("float64", "float32") for bits in (32, 64)]
H100 = (9, 0)

#: Of one multiprocessor, by compute capability 9.0 (CUDA C++ Programming Guide, technical specifications).
REGISTERS, SHARED_BYTES, THREADS, RESERVED_BYTES = 65_536, 228 << 10, 2048, 1 << 10


#: Kernels that sum up tiles in shared memory.
TILED = ("csr_balanced", "coo_segments")


class OnDevice:
    """An array as if it lay on a device: its address there is made up."""

    def __init__(self, array):
        self.dtype, self.nbytes, self.address = array.dtype, array.nbytes, id(array)
        self.__cuda_array_interface__ = {"data": (self.address, False), "typestr": array.dtype.str}


@pytest.fixture
def device(monkeypatch):
    """A stand-in for numba.cuda, to which everything can be copied."""
    memory = SimpleNamespace(get_memory_info=lambda: SimpleNamespace(free=1 << 40))
    stand_in = SimpleNamespace(
        to_device=OnDevice,
        device_array=lambda entries, dtype: OnDevice(np.empty(entries, dtype)),
        current_context=lambda: memory,
        jit=launching.cuda.jit,
    )
    monkeypatch.setattr(launching, "cuda", stand_in)


def every_case():
    """A matrix with blocks for BCSR, an overflow for HYB, an empty row and rows that tiles cut."""
    A = gallery("elasticity3d", n=4)
    indptr = np.append(A.indptr, A.indptr[-1])
    return csr_array((A.data, A.indices, indptr), shape=(A.shape[0] + 1, A.shape[1]))


@pytest.fixture
def kernels(device, monkeypatch):
    """A function that binds a matrix and returns the kernels and signatures that would be compiled."""
    met = []
    monkeypatch.setattr(launching, "_compiled", lambda kernel, signature: met.append((kernel, signature)))
    monkeypatch.setattr(launching, "_queue", lambda compiled, blocks, threads: None)

    def compiled_for(name, variant, dtype, bits, **parameters):
        A = prepared(every_case(), dtype, bits)
        if parameters.get("values"):
            A.data[:] = 0.5
        CUDA.get(name).bind(FORMATS.get(name).from_csr(A, **parameters), variant, 1)
        return list(met)

    return compiled_for


@pytest.fixture(scope="module")
def ptx():
    """A function that compiles a kernel to PTX, each once."""
    from numba import cuda
    from numba.cuda.cudadrv import nvrtc

    try:
        nvrtc.get_lowest_supported_cc()
    except RuntimeError:
        pytest.skip("the CUDA compiler NVRTC is missing: pip install '.[gpu]' brings it")
    made = {}

    def compiled(kernel, signature):
        key = kernel, str(signature)
        if key not in made:
            made[key] = cuda.compile_ptx(kernel, signature, cc=H100)[0]
        return made[key]

    return compiled


@pytest.mark.parametrize("kernel", KERNEL_NAMES, ids="-".join)
@pytest.mark.parametrize("dtype, bits", TYPES)
def test_compiles_for_sm_90_to_what_a_device_is_fast_at(kernels, ptx, kernel, dtype, bits):
    found = kernels(*kernel, dtype, bits)
    assert found
    for function, signature in found:
        text = ptx(function, signature)
        assert ".target sm_90" in text and ".entry" in text
        assert ".local" not in text, "spilled, or an array in a thread's own memory"
        assert not re.search(r"\b(ld|st)\.(?!global|shared|param)", text), "an address of unknown kind"
        assert not re.search(r"\b(div|rem)\.", text), "a division"
        assert "call" not in text
        other = "f64" if dtype == "float32" else "f32"
        assert f".{other}" not in text, "arithmetic in another type"
        # Sums of products are fused; in tiles, products are stored before they are summed up.
        is_fused = function.__name__ not in (*TILED, "add_carries", "coo_zeros")
        assert ("fma.rn" in text) == is_fused
        assert ("shfl.sync" in text) == (function.__name__ in ("csr_vector", "csr_adaptive", "add_carries"))


@pytest.mark.parametrize("kernel", NARROW, ids="-".join)
@pytest.mark.parametrize("parameters", narrow_storages("csr", "float64"), ids=str)
def test_narrow_storage_is_read_in_the_bytes_that_it_has(kernels, ptx, kernel, parameters):
    function, signature = kernels(*kernel, "float64", 32, **parameters)[0]
    text = ptx(function, signature)
    assert ".local" not in text and "call" not in text
    assert "ld.global.u16" in text, "columns of 16 bits"
    assert ("ld.global.f32" in text) == (parameters.get("values") == "float32")


@pytest.mark.parametrize("kernel", KERNEL_NAMES, ids="-".join)
@pytest.mark.parametrize("dtype, bits", [("float64", 64), ("float32", 32)])
def test_assembles_without_spills_and_half_the_threads_fit(kernels, ptx, kernel, dtype, bits):
    from cuda.core import Linker, LinkerOptions, ObjectCode

    for function, signature in kernels(*kernel, dtype, bits):
        code = ObjectCode.from_ptx(ptx(function, signature).encode())
        linker = Linker(code, options=LinkerOptions(arch="sm_90", verbose=True))
        assert linker.link("cubin").code
        said = linker.get_info_log()
        assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in said, said
        registers = int(re.search(r"Used (\d+) registers", said)[1])
        shared = re.search(r"(\d+) bytes smem", said)
        threads = 256 if function.__name__ == "bcsr_block_rows" else launching.THREADS
        blocks = min(
            REGISTERS // (8 * -(-registers // 8) * threads),
            SHARED_BYTES // (RESERVED_BYTES + int(shared[1] if shared else 0)),
        )
        assert blocks * threads >= THREADS / 2, f"{function.__name__}: {registers} registers, {shared}"


def test_64_bit_offsets_only_where_they_are_needed(kernels, device, monkeypatch):
    narrow = str(kernels("sell", "chunks", "float64", 32)[-1][1])
    monkeypatch.setattr(launching, "_LARGEST_NARROW_OFFSET", 100)
    wide = str(kernels("sell", "chunks", "float64", 32)[-1][1])
    assert "int64*" not in narrow.replace(" ", "") and "int64*" in wide.replace(" ", "")
