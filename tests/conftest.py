"""What several rooms' tests share: awkward matrices and the corpus of real ones."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pkgutil
import shutil
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Before the library of the threads is loaded: these wait for each other in a busy loop otherwise, and beside
# a second process on the same cores a product of microseconds took milliseconds.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# A hundred processes of tests would each read all our sources anew, for a third of a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import numpy as np
import pytest
from scipy.sparse import csr_array

import sparsecast as sc
from sparsecast.benchmark.journal import USER_SUITE, keep
from sparsecast.devices import DEVICES
from sparsecast.devices.binding import bound, prepared
from sparsecast.formats import FORMATS
from sparsecast.formats.narrowing import suited
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import _SHIPPED, Profile, user_path
from sparsecast.matrices.gallery import gallery, gallery_names, gallery_parameters
from sparsecast.matrices.problem import Problem
from sparsecast.models import MODELS, store
from sparsecast.operators.block_operator import Product
from sparsecast.papers.hossain_saule import svr
from sparsecast.records import Bandwidth, Candidate, Configuration, DistributedRecord, Parameters
from sparsecast.system.tabular import Columns

from .quick import take_few_trees_and_samples
from .scheduling import *  # noqa: F403

RECORDED = Path(__file__).parent / "data" / "recorded-profile.parquet"

#: Sizes that keep every matrix of the gallery small, whichever of them it takes.
SMALL = {"n": 9, "scale": 7}


@pytest.fixture(scope="session")
def recorded_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the profile recorded on a real machine, as if by the kernels of today."""
    return by_todays_kernels().save(tmp_path_factory.mktemp("recorded") / RECORDED.name)


@pytest.fixture(scope="session")
def recorded() -> Profile:
    """The profile recorded on a real machine, as if by the kernels of today."""
    return by_todays_kernels()


def by_todays_kernels() -> Profile:
    whole = Profile.load(RECORDED)
    kernels = DEVICES.get("cpu").kernels
    records = (
        dataclasses.replace(r, kernel_version=kernels.get(r.candidate.format).version) for r in whole.records
    )
    recorded = dataclasses.replace(whole, records=tuple(records))
    if os.environ.get("SPARSECAST_WRITE_GOLDEN"):
        recorded.save(RECORDED)  # the examples of the documentation read the file itself
    return recorded


@pytest.fixture(scope="session")
def recorded_complex() -> Profile:
    """The same and, to forecast from in tests, its records in double precision as if of complex values."""
    recorded = by_todays_kernels()
    records = tuple(
        dataclasses.replace(record, candidate=dataclasses.replace(record.candidate, dtype="complex128"))
        for record in recorded.select(dtype="float64")
    )
    return dataclasses.replace(recorded, records=(*recorded.records, *records))


#: Models that tests of all models try. Those of Wang, two of Hossain and the roofline need matrices or
#: bandwidths that the recorded profile lacks, blocks needs labels, and power joules; hossain-svr, whose
#: search takes seconds, is tried in its own tests.
_NOT_SERVED = ("wang-", "hossain-", "roofline", "blocks", "power")
_SERVED = [name for name in MODELS.names() if not name.startswith(_NOT_SERVED)]


@pytest.fixture(scope="session")
def served_models() -> list[str]:
    """The models that tests of all models try."""
    return _SERVED


@pytest.fixture(scope="session", params=_SERVED)
def served_model(request: pytest.FixtureRequest) -> str:
    """Each of them in turn."""
    return str(request.param)


@pytest.fixture(scope="session", autouse=True)
def few_trees() -> dict[str, Any]:
    """Have the tests grow few trees and take few samples; the usual settings of boosted trees."""
    return take_few_trees_and_samples()


@pytest.fixture(scope="session", autouse=True)
def short_search() -> Iterator[None]:
    """Let hossain-svr try 4 pairs instead of the paper's 96, whose search has a test of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svr, "GRID_C", (1.0, 8.0))
        patch.setattr(svr, "GRID_GAMMA", (0.02, 0.1))
        yield


@pytest.fixture(scope="session", autouse=True)
def store_of_every_test() -> Iterator[Callable[..., Any]]:
    """Have the tests of a process share their fits, which hundreds would learn anew in a folder of their own.

    Gives the function that reads what is stored in that folder alone.
    """
    kept, read, write = {}, store._read, store._write

    def read_any(path: Path, key: str) -> Any:
        try:
            return read(path, key)
        except OSError:
            return json.loads(kept[path.name, key])

    def keep(path: Path, key: str, model: Any, state: Any) -> None:
        kept[path.name, key] = json.dumps(state)
        write(path, key, model, state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_read", read_any)
        patch.setattr(store, "_write", keep)
        yield read


@pytest.fixture(scope="session", autouse=True)
def shipped_profiles_read_once() -> Iterator[None]:
    """Have the tests of a process read each profile of the package once."""
    load, kept = Profile.load, {}

    def once(path: Any) -> Profile:
        if Path(path).parent != _SHIPPED:
            return load(path)
        if path not in kept:
            kept[path] = load(path)
        return kept[path]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Profile, "load", once)
        yield


H200 = GPU("NVIDIA H200", 132, 64, 32, 1024, 140 << 30, 60 << 20, 1_980_000_000, 3_201_000_000, (9, 0))

#: Of the GPU below: seconds to launch a kernel, bytes a second of its memory and of the way there.
GPU_LAUNCH_S, GPU_BYTES_PER_S, GPU_WAY_BYTES_PER_S = 4e-6, 2e12, 2e10


@pytest.fixture(scope="session")
def gpu_profile() -> Profile:
    """The profile of a GPU that nobody has: recorded structures, times made up of launches and bytes."""
    recorded = Profile.load(RECORDED)
    gpu = GPU("Made-up GPU", 100, 64, 32, 1024, 80 << 30, 50 << 20, 2 * 10**9, 2 * 10**9, (9, 0))
    records = []
    for record in recorded.select(dtype="float64", threads=1):
        name = record.candidate.format
        time_s = GPU_LAUNCH_S + record.traffic_bytes / GPU_BYTES_PER_S
        made_up = {
            "time_s": time_s,
            "samples_s": (time_s,) * 3,
            "convert_s": 1e-5 + record.stored_bytes / GPU_WAY_BYTES_PER_S,
        }
        known = DEVICES.get("cuda").kernels
        for kernels in [known.get(name)] if name in known.names() else []:
            for variant in kernels.variants:
                layout = Parameters(kernels.layout)
                candidate = Candidate(name, variant, "cuda", "float64", 32, 1, layout)
                made = {"candidate": candidate, "kernel_version": kernels.version, **made_up}
                records.append(dataclasses.replace(record, **made))
    bandwidths = [
        Bandwidth(
            kind, "cuda", 1, size, 1e-5 + size / GPU_WAY_BYTES_PER_S, 0.0, "2026-01-01T00:00:00", "made up"
        )
        for kind in ("to device", "from device")
        for size in (1 << 16, 1 << 24)
    ]
    machine = dataclasses.replace(recorded.machine, device="cuda", gpu=gpu)
    return Profile(machine, tuple(records), recorded.matrices, tuple(bandwidths))


@pytest.fixture(scope="session")
def keep_times() -> Callable[[Profile, Problem, float], None]:
    """Keep Records of a matrix as a user's: what the linear model expects with one thread, times a factor."""

    def kept(profile: Profile, problem: Problem, factor: float) -> None:
        template = profile.select(dtype="float64", threads=1)[0]
        kernels = DEVICES.get("cpu").kernels
        records = [
            dataclasses.replace(
                template,
                candidate=each.candidate,
                matrix=problem.specification,
                nnz=problem.matrix.nnz,
                suite=USER_SUITE,
                time_s=factor * each.time_s,
                samples_s=(factor * each.time_s,),
                kernel_version=kernels.get(each.candidate.format).version,
                measured_at="2026-01-01T00:00:00+00:00",
            )
            for each in sc.predict(problem, profile, threads=1, model="linear")
        ]
        keep(profile.machine, problem, records)

    return kept


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for profiles and journals, instead of the user's."""
    folder = tmp_path / "home"
    monkeypatch.setenv("SPARSECAST_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def saved_own(recorded: Profile, tmp_path_factory: pytest.TempPathFactory) -> tuple[Profile, Path]:
    """The recorded times as this machine's own, and their file."""
    profile = Profile(detect(), recorded.records, recorded.matrices)
    return profile, profile.save(tmp_path_factory.mktemp("own") / RECORDED.name)


@pytest.fixture(scope="session")
def saved_own_complex(
    recorded_complex: Profile, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Profile, Path]:
    """The same with Records of complex values."""
    profile = Profile(detect(), recorded_complex.records, recorded_complex.matrices)
    return profile, profile.save(tmp_path_factory.mktemp("own") / "complex.parquet")


def _calibrated(profile: Profile, saved: Path) -> Profile:
    path = user_path(profile.name)
    path.parent.mkdir(parents=True)
    shutil.copy(saved, path)
    return profile


@pytest.fixture
def own(data_folder: Path, saved_own: tuple[Profile, Path]) -> Profile:
    """Let this machine be calibrated: the recorded times, single-threaded, as its own."""
    return _calibrated(*saved_own)


@pytest.fixture
def own_complex(data_folder: Path, saved_own_complex: tuple[Profile, Path]) -> Profile:
    """The same with Records of complex values."""
    return _calibrated(*saved_own_complex)


def distributed_record(
    way: Configuration, matrix: str, nnz: int, distribution: Any, time_s: float, **more: Any
) -> DistributedRecord:
    """Return a measured product of ranks of which no more is known than this."""
    known = {"samples_s": (time_s,), "spread": None, "noise": None, "error": 0.0, "is_oversubscribed": False}
    known |= {"measured_at": "", "version": "0.1", **more}
    return DistributedRecord(way, matrix, nnz, distribution, time_s=time_s, **known)


@contextmanager
def traced_bytes() -> Iterator[list[int]]:
    """Give a list of the bytes of Python and NumPy that are left at the end, and of the most before."""
    found: list[int] = []
    tracemalloc.start()
    try:
        yield found
        found += tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


def with_lengths(lengths: Sequence[int], cols: int, seed: int = 0) -> csr_array:
    """Return a matrix with these row lengths: distinct sorted columns, values small non-zero integers."""
    generator = np.random.default_rng(seed)
    columns = [np.sort(generator.permutation(cols)[:length]) for length in lengths]
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    indices = np.concatenate([np.empty(0), *columns]).astype(np.int32)
    data = generator.integers(1, 9, indices.size) * generator.choice((-1.0, 1.0), indices.size)
    return csr_array((data, indices, indptr), shape=(len(lengths), cols))


def left_packed(lengths: Sequence[int], cols: int | None = None) -> csr_array:
    """Return a matrix of ones with these row lengths, each from column 0 on."""
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int32)
    indices = np.arange(indptr[-1], dtype=np.int32) - np.repeat(indptr[:-1], np.diff(indptr))
    shape = len(lengths), max(lengths, default=0) if cols is None else cols
    return csr_array((np.ones(indptr[-1]), indices, indptr), shape=shape)


def exact_product(A: csr_array, x: np.ndarray) -> np.ndarray:
    """Return A x by plain sums, which are exact for whole numbers."""
    nnz, wide = A.indptr[-1], np.result_type(A.dtype, np.float64)
    y = np.zeros(A.shape[0], wide)
    np.add.at(
        y, np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.data[:nnz].astype(wide) * x[A.indices[:nnz]]
    )
    return y.astype(x.dtype)


def cpu_product(built: StorageFormat, variant: str, threads: int) -> Product:
    """Return the product of a matrix in a format by a kernel of the processor."""
    candidate = Candidate(built.name, variant, "cpu", built.dtype.name, 32, threads)
    return bound(built, candidate).product


def narrow_storages(name: str, dtype: str) -> list[dict[str, Any]]:
    """Return the usual narrow storages that a format takes with a type of values."""
    usual = ({"values": "one", "columns": 16}, {"values": "float32", "columns": 16}, {"columns": 16})
    storage, found = FORMATS.get(name), []
    for each in usual:
        own = {key: value for key, value in suited(each, dtype).items() if storage.takes(key, value)}
        found += [own] if own and own not in found else []
    return found


def _one_dense_column() -> csr_array:
    A = with_lengths([1] * 60, 20)
    A.indices[:] = 13
    return A


def _unsorted() -> csr_array:
    A = with_lengths([5, 0, 9, 1, 4], 12)
    for first, last in zip(A.indptr[:-1], A.indptr[1:], strict=True):
        A.indices[first:last] = A.indices[first:last][::-1]
    A.has_sorted_indices = False
    return A


def _duplicates() -> csr_array:
    indices = np.array([3, 3, 3, 0, 2, 0, 1, 1], dtype=np.int32)
    indptr = np.array([0, 3, 6, 6, 8], dtype=np.int32)
    return csr_array((np.array([1.0, -4, 2, 5, 7, -5, 3, 8]), indices, indptr), shape=(4, 5))


def _explicit_zeros() -> csr_array:
    A = with_lengths([3, 4, 1, 6, 2], 8)
    A.data[::2] = 0.0
    A.data[2] = -0.0
    return A


def _spare_room() -> csr_array:
    A = with_lengths([3, 0, 2, 6], 9)
    wider = csr_array(A.shape)
    wider.indptr = A.indptr
    wider.indices = np.append(A.indices, np.array([8, 8, 8], dtype=np.int32))
    wider.data = np.append(A.data, [1e9, 1e9, 1e9])
    return wider


def symmetric(lengths: Sequence[int], diagonal: Sequence[bool], seed: int = 0) -> csr_array:
    """Return a symmetric matrix with these entries a row below the diagonal, where they fit, and on it."""
    generator = np.random.default_rng(seed)
    rows = len(lengths)
    dense = np.zeros((rows, rows))
    for i, length in enumerate(lengths):
        columns = generator.permutation(i)[:length]
        dense[i, columns] = dense[columns, i] = generator.integers(1, 9, len(columns))
    dense[np.arange(rows), np.arange(rows)] = np.where(diagonal, -3.0, 0.0)
    return csr_array(dense)


def of_kind(kind: str, A: csr_array) -> csr_array:
    """Return the complex matrix of a kind of symmetry with the lower triangle of a matrix of real integers.

    Some of its values are real; on the diagonal a skew-symmetric one has a zero, which is stored.
    """
    half = np.tril(A.toarray(), -1)
    half = half + 1j * np.where(half == 0, 0, 2 - half)
    image = -half.T if kind == "skew" else half.conj().T
    found = csr_array(half + image + np.diag(A.diagonal()))
    if kind == "skew":
        found.data[found.data.imag == 0] = 0.0
    return found


def in_blocks(rows: int) -> csr_array:
    """Return a matrix of full 3 x 3 blocks in symmetric places, cut off after `rows` rows and columns."""
    block_rows = -(-rows // 3)
    pattern = symmetric([2] * block_rows, [i % 5 > 0 for i in range(block_rows)]).toarray() != 0
    values = np.random.default_rng(7).integers(1, 9, (3 * block_rows, 3 * block_rows))
    return csr_array((np.kron(pattern, np.ones((3, 3))) * values)[:rows, :rows])


def symmetric_matrices() -> dict[str, csr_array]:
    """Return awkward matrices whose lower triangle tells the upper one, by what is awkward in them."""
    generator = np.random.default_rng(6)
    arrow = csr_array(symmetric([0] * 80 + [80], [True] * 81))
    gaps = symmetric([2] * 30, [i % 3 > 0 for i in range(30)])
    zeros = symmetric([3] * 20, [True] * 20)
    zeros.data[zeros.data == -3.0] = 0.0
    return {
        "symmetric: one entry": symmetric([0], [True]),
        "symmetric: a diagonal": symmetric([0] * 40, [True] * 40),
        "symmetric: a gap in the diagonal": gaps,
        "symmetric: no diagonal": symmetric([1] * 30, [False] * 30),
        "symmetric: an arrow": arrow,
        "symmetric: an arrow to the left": csr_array(arrow.toarray()[::-1, ::-1]),
        "symmetric: dense": symmetric([50] * 50, [True] * 50),
        "symmetric: empty rows": symmetric([0, 0, 2, 0, 3] * 9, [i % 5 > 3 for i in range(45)]),
        "symmetric: any lengths": symmetric(generator.integers(0, 30, 200).tolist(), [True] * 200),
        "symmetric: zeros on the diagonal": zeros,
        "hermitian: a gap in the diagonal": of_kind("hermitian", gaps),
        "hermitian: blocks": of_kind("hermitian", in_blocks(47)),
        "skew: any lengths": of_kind("skew", symmetric(generator.integers(0, 30, 99).tolist(), [True] * 99)),
        "skew: blocks": of_kind("skew", in_blocks(46)),
    }


def with_diagonals(offsets: Sequence[int], shape: tuple[int, int], share: float = 1.0) -> csr_array:
    """Return a matrix with this share of the places on these diagonals, values small non-zero integers."""
    generator = np.random.default_rng(len(offsets))
    rows = np.repeat(np.arange(shape[0]), len(offsets))
    cols = rows + np.tile(np.sort(offsets), shape[0])
    kept = (cols >= 0) & (cols < shape[1]) & (generator.random(len(cols)) < share)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(rows[kept], minlength=shape[0])))).astype(np.int32)
    data = generator.integers(1, 9, kept.sum()) * generator.choice((-1.0, 1.0), kept.sum())
    return csr_array((data, cols[kept].astype(np.int32), indptr), shape=shape)


def awkward_matrices() -> dict[str, csr_array]:
    """Return the small matrices that kernels and formats stumble over, by what is awkward in them."""
    generator = np.random.default_rng(5)
    shapes = {"no rows": (0, 5), "no columns": (5, 0), "nothing": (0, 0), "one empty place": (1, 1)}
    made = {name: csr_array(shape) for name, shape in (shapes | {"all rows empty": (7, 5)}).items()}
    return made | {
        "one entry": with_lengths([1], 1),
        "one row": with_lengths([100], 120),
        "one column": with_lengths([1] * 100, 1),
        "one dense row": with_lengths([1, 2] * 20 + [300] + [2, 1, 0] * 8, 300),
        "one dense column": _one_dense_column(),
        "last row empty": with_lengths([3, 2, 4, 0], 6),
        "last rows empty": with_lengths([3, 2, 4] + [0] * 30, 6),
        "first rows empty": with_lengths([0] * 30 + [3, 2, 4], 6),
        "every other row empty": with_lengths([0, 5] * 12, 11),
        "a long row among empty ones": with_lengths([0] * 20 + [2000] + [0] * 30, 2500),
        "long rows at both ends": with_lengths([900, *[1] * 50, 900], 1000),
        "unsorted": _unsorted(),
        "duplicates": _duplicates(),
        "explicit zeros": _explicit_zeros(),
        "tall": with_lengths(generator.integers(0, 6, 300).tolist(), 7),
        "wide": with_lengths(generator.integers(0, 60, 7).tolist(), 300),
        "lengths 0 to 9": with_lengths([*range(10), *range(9, -1, -1)], 13),
        "constant length 4": with_lengths([4] * 33, 40),
        "geometric lengths": with_lengths(np.minimum(generator.geometric(0.2, 400), 200).tolist(), 200),
        "lengths above the exact levels": with_lengths([63, 64, 65, 71, 72, 73, 130, 2], 150),
        "a third of long rows": with_lengths([1, 1, 70] * 9, 80),
        "spare room in the arrays": _spare_room(),
        **symmetric_matrices(),
        "diagonals with gaps": with_diagonals((-90, -1, 0, 1, 40), (131, 131), 0.5),
        "diagonals of a tall one": with_diagonals((-71, -60, -3, 0, 2), (150, 80)),
        "diagonals of a wide one": with_diagonals((-3, 0, 5, 60, 149), (99, 150)),
    }


def small_gallery() -> dict[str, csr_array]:
    """Return a small matrix of every kind in the gallery, by its specification."""
    found = {}
    for name in gallery_names():
        values = {key: size for key, size in SMALL.items() if key in gallery_parameters(name)}
        found[f"{name} {values}"] = gallery(name, **values)
    return found


@pytest.fixture(scope="session")
def matrices() -> Iterator[dict[str, csr_array]]:
    """Small matrices by name, to be read only, which is checked at the end."""
    found = awkward_matrices() | small_gallery() | {"circuit n=500": gallery("circuit", n=500)}
    before = {name: _bits(A) for name, A in found.items()}
    yield found
    changed = [name for name, A in found.items() if _bits(A) != before[name]]
    assert not changed, f"a product or a conversion changed its matrix: {changed}"


@pytest.fixture(scope="session")
def in_type() -> Callable[..., csr_array]:
    """Return a matrix in other types: a real one gets imaginary parts, a complex one loses them."""

    def typed(A: csr_array, dtype: str, bits: int = 32) -> csr_array:
        to_complex = np.dtype(dtype).kind == "c"
        if A.dtype.kind == "c" and not to_complex:
            return prepared(csr_array((A.data.real, A.indices, A.indptr), shape=A.shape), dtype, bits)
        found = prepared(A, dtype, bits)
        if A.dtype.kind != "c" and to_complex:
            # Made of the value: whole numbers stay whole, zeros zero and mirrored values mirrored.
            found.data.imag = np.where(A.data == 0, 0, 2 - A.data)
        return found

    return typed


def _bits(A: csr_array) -> tuple[bytes, bytes, bytes]:
    return A.indptr.tobytes(), A.indices.tobytes(), A.data.tobytes()


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real matrices; skips where there is none."""
    beside = Path(__file__).parents[2] / "shared" / "matrices"
    folder = Path(os.environ.get("SPARSECAST_CORPUS") or beside)
    if not folder.is_dir():
        pytest.skip(f"no corpus of real matrices at {folder}: set SPARSECAST_CORPUS to its folder")
    return folder


def listed() -> dict[str, Columns]:
    """Return the columns of all documents, by how the commands are called."""
    documents: dict[str, Columns] = {}
    for module in pkgutil.walk_packages(sc.__path__, "sparsecast."):
        if ".results." in module.name or module.name.startswith("sparsecast.papers."):
            documents |= getattr(importlib.import_module(module.name), "DOCUMENTS", {})
    return documents


def check(value: Any, columns: Columns, path: str) -> None:
    """Check the keys of an object, and of the objects in it."""
    assert list(value) == [column.key for column in columns if column.key], path
    for column in columns:
        inner = value.get(column.key)
        if not column.columns or inner is None:
            continue
        if column.by:
            inner = list(inner.values())
        for item in [inner] if isinstance(inner, Mapping) else inner:
            check(item, column.columns, f"{path}.{column.key}")


@pytest.fixture(scope="session")
def check_keys() -> Callable[[Any, str], None]:
    """Check that the document of a command has exactly the keys that are listed under a name."""
    documents = listed()
    return lambda value, name: check(value, documents[name], name)
