"""Matrices of well-known problems, by name and parameters: ``gallery("poisson3d", n=100)``.

The same call gives the same matrix on every machine: canonical CSR (sorted, without duplicates) in float64 or
complex128, with int32 indices where they suffice.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from sparsecast.errors import InputError, UnknownNameError, remedy_for
from sparsecast.matrices.families import split_specification
from sparsecast.matrices.synthesis import canonical, csr_bytes, starts_of
from sparsecast.system.integers import GOLDEN, index_dtype, mixed, stream_of
from sparsecast.system.jit import njit
from sparsecast.system.memory import require_memory

#: Bytes that SciPy's conversion from coordinates holds at its peak, for each coordinate entry: two int64
#: coordinates and a value, the CSR arrays, and the copy that summing duplicates makes.
_COORDINATE_BYTES = 56

#: Chances of a recursive matrix's four quarters, 1/65536: (0.57, 0.19, 0.19, 0.05) added up
#: (Chakrabarti et al. 2004, with the values of the Graph 500 benchmark).
_RMAT_UP_TO_A, _RMAT_UP_TO_B, _RMAT_UP_TO_C = 37356, 49808, 62260

#: Shares of a circuit's nodes with a second near neighbour, with a far one, and on a given supply net.
_CIRCUIT_SECOND, _CIRCUIT_FAR, _CIRCUIT_SUPPLY = 0.6, 0.1, 0.02
#: Supply nets of a circuit, and how far apart near neighbours are numbered on average.
_CIRCUIT_NETS, _CIRCUIT_NEAR = 4, 16


#: What a triangulation takes at its peak for each point: Qhull's facets, its triangles and their edges.
_DELAUNAY_BYTES = 800


def gallery(name: str, /, **parameters: int) -> csr_array:
    """Return the gallery's matrix of that name.

    Parameters
    ----------
    name : str
        One of ``sparsecast gallery``, such as ``"poisson3d"``.
    **parameters : int
        Of that matrix, such as ``n=100``; those that are not given keep their defaults.

    Returns
    -------
    csr_array
        Values in float64 or complex128, rows sorted and free of duplicates.

    Raises
    ------
    UnknownNameError
        If the gallery has no matrix `name`, or that matrix no such parameter.
    InputError
        If a value is not an integer or out of range.
    MatrixSizeError
        If the matrix, or the work of making it, does not fit in the memory available.

    Examples
    --------
    >>> gallery("poisson2d", n=3).shape
    (9, 9)
    """
    accepted = gallery_parameters(name)
    values = {}
    for key, value in parameters.items():
        if key not in accepted:
            raise UnknownNameError(
                f"parameter '{key}' of gallery '{name}' is unknown: known are {', '.join(accepted)}; "
                f"{remedy_for(key, accepted, 'name one')}"
            )
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise InputError(f"{key} = {value} for gallery '{name}': expected an integer; give digits only")
        values[key] = int(value)
    return _GALLERY[name](**values)


def gallery_from_specification(specification: str) -> csr_array:
    name, texts = split_specification(specification, "integer", "poisson3d?n=100&points=27")
    parameters: dict[str, Any] = dict(texts)
    for key, text in texts.items():
        with suppress(ValueError):  # `gallery` refuses what is no integer
            parameters[key] = int(text)
    return gallery(name, **parameters)


def gallery_names() -> list[str]:
    return sorted(_GALLERY)


def gallery_parameters(name: str) -> dict[str, int | None]:
    """Return the parameters of a matrix with their defaults; None follows from the others."""
    if name not in _GALLERY:
        raise UnknownNameError(
            f"gallery '{name}' is unknown: known are {', '.join(gallery_names())}; "
            f"{remedy_for(name, gallery_names(), 'name one')}"
        )
    return {key: parameter.default for key, parameter in inspect.signature(_GALLERY[name]).parameters.items()}


def gallery_matrices() -> dict[str, dict[str, Any]]:
    """Return the parameters of each matrix, and one line that describes it, by name."""
    return {
        name: {
            "parameters": gallery_parameters(name),
            "summary": (inspect.getdoc(_GALLERY[name]) or "").partition("\n")[0],
        }
        for name in gallery_names()
    }


def poisson2d(n: int = 1000) -> csr_array:
    """Laplace operator on an n x n grid, 5 points, fixed boundary; symmetric positive definite."""
    _check("poisson2d", 1, n=n)
    offsets = _five_points()
    return _stencil("poisson2d", (1, n, n), offsets, _laplace(offsets))


def helmholtz2d(n: int = 500, wavelength: int = 10) -> csr_array:
    """Waves on an n x n grid, 5 points, leaving through the boundary; complex symmetric, not Hermitian.

    Helmholtz' equation, -laplace(u) - k**2 u, with `wavelength` grid steps a wave, and on the whole boundary
    the condition of first order that absorbs what meets it head on, du/dn = i k u.
    """
    _check("helmholtz2d", 1, n=n)
    _check("helmholtz2d", 2, wavelength=wavelength)
    offsets, k = _five_points(), 2 * math.pi / wavelength
    waves = _stencil("helmholtz2d", (1, n, n), offsets, _laplace(offsets).astype(np.complex128))
    # Beyond the boundary stands 1 + i k times the value on it.
    missing = len(offsets) - np.diff(waves.indptr)
    waves.setdiag((4 - k**2) - missing * (1 + 1j * k))
    return waves


def poisson3d(n: int = 100, points: int = 7) -> csr_array:
    """Laplace operator on an n x n x n grid, 7 or 27 points, fixed boundary; symmetric positive definite."""
    _check("poisson3d", 1, n=n)
    if points not in (7, 27):
        raise InputError(f"points = {points} for gallery 'poisson3d': expected 7 or 27; give one of these")
    reach = 1 if points == 7 else 3
    offsets = [offset for offset in _neighbours() if sum(map(abs, offset)) <= reach]
    return _stencil("poisson3d", (n, n, n), offsets, _laplace(offsets))


def elasticity3d(n: int = 32) -> csr_array:
    """Linear elasticity of a clamped cube, n x n x n nodes of 3 unknowns each, trilinear elements.

    Symmetric positive definite; Lame's constants are both 1. All nine values of a node pair are stored,
    zeros included, as finite element codes do.
    """
    _check("elasticity3d", 1, n=n)
    offsets = _neighbours()
    return _stencil("elasticity3d", (n, n, n), offsets, _elasticity(offsets))


def banded(n: int = 500_000, half_bandwidth: int = 8) -> csr_array:
    """Full band of half_bandwidth diagonals on each side of the main one; symmetric positive definite."""
    _check("banded", 1, n=n)
    _check("banded", 0, half_bandwidth=half_bandwidth)
    reach = min(half_bandwidth, n - 1)
    nnz = n + 2 * reach * n - reach * (reach + 1)
    # The stencil checks this as well, but only once the list of its neighbours is there.
    require_memory(csr_bytes(n, nnz), f"gallery 'banded' with {n} rows, {nnz} entries")
    offsets = [(0, 0, dx) for dx in range(-reach, reach + 1)]
    return _stencil("banded", (1, 1, n), offsets, _laplace(offsets))


def random(n: int = 1_000_000, cols: int | None = None, nnz_per_row: int = 8, seed: int = 0) -> csr_array:
    """Rows of nnz_per_row entries each, n of them; columns uniform over cols (n), values over [-1, 1)."""
    cols = n if cols is None else cols
    _check("random", 1, n=n)
    _check("random", 1, most=2**62, cols=cols)
    _check("random", 0, nnz_per_row=nnz_per_row, seed=seed)
    if nnz_per_row > cols:
        raise InputError(
            f"nnz_per_row = {nnz_per_row} for gallery 'random': expected at most cols = {cols}, as columns "
            "are distinct; give fewer entries a row or more columns"
        )
    nnz, index = n * nnz_per_row, index_dtype(n * nnz_per_row, cols)
    # Sorting and looking for duplicates holds a copy of the columns and a mask; a nearly full matrix is
    # found as the complement of a sparse one, which holds a mask of all its places and int64 columns.
    work = 9 * nnz if 2 * nnz_per_row <= cols else 9 * n * cols
    require_memory(csr_bytes(n, nnz, index.itemsize) + work, f"gallery 'random' with {nnz} entries")
    generator = np.random.default_rng(seed)
    indices = _distinct_columns(generator, n, cols, nnz_per_row, index)
    data = generator.uniform(-1.0, 1.0, nnz)
    indptr = np.arange(n + 1, dtype=index) * index.type(nnz_per_row)
    return canonical(data, indices.reshape(-1), indptr, (n, cols))


def rmat(scale: int = 18, degree: int = 16, seed: int = 0, rows: int = 0, edges: int = 0) -> csr_array:
    """Power-law graph of 2**scale or rows nodes, with degree edges per node, or edges in all.

    An edge drawn k times has value k. Recursive matrix of Chakrabarti, Zhan, Faloutsos 2004 with chances
    0.57, 0.19, 0.19, 0.05. Nodes keep the numbers of the recursion, so the busy ones come first. If `rows` is
    no power of two, edges of nodes beyond them are drawn again.
    """
    _check("rmat", 0, most=40, scale=scale)
    _check("rmat", 0, most=2**40, rows=rows)
    _check("rmat", 0, degree=degree, seed=seed, edges=edges)
    nodes = rows or 2**scale
    edges = edges or nodes * degree
    require_memory(
        edges * _COORDINATE_BYTES + nodes * 16, f"gallery 'rmat' with {nodes} nodes and {edges} edges"
    )
    index = index_dtype(edges, nodes)
    sources, targets = np.empty(edges, dtype=index), np.empty(edges, dtype=index)
    _draw_recursive_edges(np.uint64(nodes), np.uint64(seed % 2**64), sources, targets)
    return _from_coordinates(np.ones(edges), sources, targets, nodes)


def arrow(n: int = 1_000_000, dense_rows: int = 3) -> csr_array:
    """Diagonal plus dense_rows full rows and columns, the first ones; symmetric positive definite."""
    _check("arrow", 1, n=n)
    _check("arrow", 0, most=n, dense_rows=dense_rows)
    thin = n - dense_rows
    nnz = dense_rows * n + thin * (dense_rows + 1)
    index = index_dtype(nnz, n)
    require_memory(csr_bytes(n, nnz, index.itemsize), f"gallery 'arrow' with {nnz} entries")
    columns = np.arange(n, dtype=index)
    below = np.broadcast_to(columns[:dense_rows], (thin, dense_rows))
    below = np.column_stack((below, columns[dense_rows:]))
    indices = np.concatenate((np.tile(columns, dense_rows), below.ravel()))
    del below
    indptr = starts_of(np.repeat((n, dense_rows + 1), (dense_rows, thin)), index)
    # Each diagonal value exceeds the other magnitudes of its row by 1.
    data = np.full(nnz, -1.0)
    data[: dense_rows * n : n + 1] = n
    data[dense_rows * (n + 1) :: dense_rows + 1] = dense_rows + 1
    return canonical(data, indices, indptr, (n, n))


def circuit(n: int = 1_000_000, seed: int = 0) -> csr_array:
    """Conductances of a made-up circuit of n nodes; symmetric positive definite.

    Mostly 3 to 6 entries a row near the diagonal, a tenth of the nodes with a far neighbour as well, and
    four supply nets that each touch a fiftieth of the nodes: a few very long rows and columns.
    """
    _check("circuit", 1, n=n)
    _check("circuit", 0, seed=seed)
    links = int(n * (1 + _CIRCUIT_SECOND + _CIRCUIT_FAR + _CIRCUIT_NETS * _CIRCUIT_SUPPLY)) + 5
    require_memory((2 * links + n) * (_COORDINATE_BYTES + 16), f"gallery 'circuit' with {n} nodes")
    generator = np.random.default_rng(seed)
    nodes = np.arange(n)
    second = nodes[generator.random(n) < _CIRCUIT_SECOND]
    far = nodes[generator.random(n) < _CIRCUIT_FAR]
    starts = [nodes, second, far]
    ends = [sources + generator.geometric(1.0 / _CIRCUIT_NEAR, sources.size) for sources in (nodes, second)]
    ends.append(generator.integers(0, n, far.size))
    for net in generator.integers(0, n, _CIRCUIT_NETS):
        touched = nodes[generator.random(n) < _CIRCUIT_SUPPLY]
        starts.append(touched)
        ends.append(np.full(touched.size, net))
    start, end = np.concatenate(starts), np.concatenate(ends) % n
    linked = start != end
    start, end = start[linked], end[linked]
    conductance = generator.uniform(0.5, 1.5, start.size)
    # A leak to the ground from every node makes the matrix definite.
    diagonal = 0.01 + np.bincount(start, conductance, n) + np.bincount(end, conductance, n)
    values = np.concatenate((-conductance, -conductance, diagonal))
    return _from_coordinates(
        values, np.concatenate((start, end, nodes)), np.concatenate((end, start, nodes)), n
    )


def delaunay(n: int = 1_000_000, edges: int = 0, seed: int = 0) -> csr_array:
    """Graph of a triangulation of n random points in the plane, as unstructured meshes have; weights 1.

    Points are numbered from bottom to top. Of about 3 n edges the shortest are kept where `edges` says how
    many: a planar graph of lower degree, as road networks are.
    """
    from scipy.spatial import Delaunay

    _check("delaunay", 4, n=n)
    _check("delaunay", 0, edges=edges, seed=seed)
    require_memory(n * _DELAUNAY_BYTES, f"gallery 'delaunay' with {n} points")
    points = np.random.default_rng(seed).random((n, 2))
    points = points[np.argsort(points[:, 1], kind="stable")]
    triangles = Delaunay(points).simplices
    start, end = (np.concatenate([triangles[:, k] for k in order]) for order in ((0, 1, 2), (1, 2, 0)))
    del triangles
    low, high = np.minimum(start, end), np.maximum(start, end)
    links = np.unique(low.astype(np.int64) * n + high)  # an inner edge is of two triangles
    low, high = links // n, links % n
    if 0 < edges < len(links):
        squares = ((points[low] - points[high]) ** 2).sum(axis=1)
        shortest = np.sort(np.argpartition(squares, edges - 1)[:edges])
        low, high = low[shortest], high[shortest]
    return _from_coordinates(
        np.ones(2 * len(low)), np.concatenate((low, high)), np.concatenate((high, low)), n
    )


_GALLERY: dict[str, Callable[..., csr_array]] = {
    function.__name__: function
    for function in (
        *(poisson2d, helmholtz2d, poisson3d, elasticity3d, banded),
        *(random, rmat, arrow, circuit, delaunay),
    )
}


def _check(name: str, least: int, /, most: float = math.inf, **values: int) -> None:
    for key, value in values.items():
        if not least <= value <= most:
            bound, other = (f"least {least}", "larger") if value < least else (f"most {most}", "smaller")
            raise InputError(
                f"{key} = {value} for gallery '{name}': expected an integer of at {bound}; give a {other} one"
            )


def _from_coordinates(
    values: NDArray[np.float64], rows: NDArray[np.integer], columns: NDArray[np.integer], n: int
) -> csr_array:
    index = index_dtype(values.size, n)
    coordinates = (rows.astype(index, copy=False), columns.astype(index, copy=False))
    matrix = coo_array((values, coordinates), shape=(n, n)).tocsr()
    matrix.sum_duplicates()
    return matrix


def _five_points() -> list[tuple[int, int, int]]:
    """Return the offsets of a node and its four neighbours in a plane, by column."""
    return [offset for offset in _neighbours() if offset[0] == 0 and abs(offset[1]) + abs(offset[2]) <= 1]


def _neighbours() -> list[tuple[int, int, int]]:
    """Return the 27 offsets of a node and its neighbours, by column."""
    return [(dz, dy, dx) for dz in (-1, 0, 1) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]


def _laplace(offsets: list[tuple[int, int, int]]) -> NDArray[np.float64]:
    """Return the 1 x 1 blocks of a stencil: -1 for a neighbour, their number for the node itself.

    A single point gets 1, so that the matrix is definite.
    """
    values = np.full((len(offsets), 1, 1), -1.0)
    values[offsets.index((0, 0, 0))] = max(len(offsets) - 1, 1)
    return values


def _elasticity(offsets: list[tuple[int, int, int]]) -> NDArray[np.float64]:
    """Return the 3 x 3 blocks between a node and its neighbours, for trilinear cubes and lambda = mu = 1.

    Block (i, j) is lambda <di a, dj b> + mu <dj a, di b> + mu delta_ij <grad a, grad b>, with a and b the
    shape functions of the two nodes. On a regular grid each integral is a product of three integrals over
    one axis, tabulated here for a neighbour before, at and after the node.
    """
    tables = {  # by whether the first and the second shape function are derived along this axis
        (False, False): (1 / 6, 2 / 3, 1 / 6),
        (True, True): (-1.0, 2.0, -1.0),
        (True, False): (0.5, 0.0, -0.5),
        (False, True): (-0.5, 0.0, 0.5),
    }

    def integral(offset: tuple[int, int, int], i: int, j: int) -> float:
        # Component 0 is x, and x is the last part of an offset.
        steps = enumerate(reversed(offset))
        return math.prod(tables[axis == i, axis == j][step + 1] for axis, step in steps)

    blocks = np.zeros((len(offsets), 3, 3))
    for block, offset in zip(blocks, offsets, strict=True):
        gradients = sum(integral(offset, k, k) for k in range(3))
        for i in range(3):
            for j in range(3):
                block[i, j] = integral(offset, i, j) + integral(offset, j, i) + (gradients if i == j else 0.0)
    return blocks


def _stencil(
    name: str, grid: tuple[int, int, int], offsets: list[tuple[int, int, int]], values: NDArray[Any]
) -> csr_array:
    """Return the matrix of a stencil on a (z, y, x) grid whose neighbours beyond the boundary are fixed at 0.

    x is numbered fastest. `values` has a square block for each neighbour, in the order of their columns.
    """
    unknowns = values.shape[1]
    rows = math.prod(grid) * unknowns
    pairs = sum(
        math.prod(max(nodes - abs(step), 0) for nodes, step in zip(grid, offset, strict=True))
        for offset in offsets
    )
    nnz = pairs * unknowns**2
    index = index_dtype(nnz, rows)
    wanted = csr_bytes(rows, nnz, index.itemsize, values.itemsize)
    require_memory(wanted, f"gallery '{name}' with {rows} rows, {nnz} entries")
    indptr, indices = np.empty(rows + 1, dtype=index), np.empty(nnz, dtype=index)
    data = np.empty(nnz, dtype=values.dtype)
    _fill_stencil(np.array(grid), np.array(offsets), values, indptr, indices, data)
    return canonical(data, indices, indptr, (rows, rows))


@njit(cache=True, nogil=True)
def _fill_stencil(grid, offsets, values, indptr, indices, data):
    unknowns = values.shape[1]
    present = np.empty(len(offsets), dtype=np.int64)
    entry, row = 0, 0
    indptr[0] = 0
    for z in range(grid[0]):
        for y in range(grid[1]):
            for x in range(grid[2]):
                count = 0
                for neighbour in range(len(offsets)):
                    inside_z = 0 <= z + offsets[neighbour, 0] < grid[0]
                    inside_y = 0 <= y + offsets[neighbour, 1] < grid[1]
                    inside_x = 0 <= x + offsets[neighbour, 2] < grid[2]
                    present[count] = neighbour
                    count += inside_z & inside_y & inside_x
                node = (z * grid[1] + y) * grid[2] + x
                for i in range(unknowns):
                    for neighbour in present[:count]:
                        step = (offsets[neighbour, 0] * grid[1] + offsets[neighbour, 1]) * grid[2] + offsets[
                            neighbour, 2
                        ]
                        for j in range(unknowns):
                            indices[entry] = (node + step) * unknowns + j
                            data[entry] = values[neighbour, i, j]
                            entry += 1
                    row += 1
                    indptr[row] = entry


@njit(cache=True, nogil=True)
def _draw_recursive_edges(nodes, seed, rows, columns):
    stream = stream_of(seed)
    scale = np.uint64(0)
    while np.uint64(1) << scale < nodes:
        scale += np.uint64(1)
    draws = (scale + np.uint64(3)) // np.uint64(4)
    counter = np.uint64(0)
    for edge in range(rows.size):
        is_outside = True
        while is_outside:
            row, column, level = np.uint64(0), np.uint64(0), np.uint64(0)
            for _ in range(draws):
                bits = mixed(stream + counter * GOLDEN)
                counter += np.uint64(1)
                # Each level of the recursion takes 16 of the 64 bits.
                for _ in range(np.uint64(4)):
                    if level < scale:
                        draw = bits & np.uint64(0xFFFF)
                        lower = np.uint64(draw >= _RMAT_UP_TO_B)
                        right = np.uint64(draw >= _RMAT_UP_TO_A) ^ lower ^ np.uint64(draw >= _RMAT_UP_TO_C)
                        row, column = row << np.uint64(1) | lower, column << np.uint64(1) | right
                        bits >>= np.uint64(16)
                        level += np.uint64(1)
            is_outside = row >= nodes or column >= nodes
        rows[edge], columns[edge] = row, column


def _distinct_columns(
    generator: np.random.Generator, rows: int, cols: int, per_row: int, index: np.dtype[np.signedinteger]
) -> NDArray[np.integer]:
    """Return `per_row` distinct sorted columns for every row, uniform over all such choices."""
    if 2 * per_row > cols:
        kept = np.ones((rows, cols), dtype=bool)
        np.put_along_axis(
            kept, _distinct_columns(generator, rows, cols, cols - per_row, index), False, axis=1
        )
        return np.nonzero(kept)[1].astype(index)
    columns = generator.integers(0, cols, (rows, per_row), dtype=index)
    columns.sort(axis=1)
    # Redrawing only the later ones of equal columns is drawing one by one and refusing what is there.
    unsettled = np.arange(rows)
    while unsettled.size:
        part = columns[unsettled]
        repeated = np.zeros(part.shape, dtype=bool)
        repeated[:, 1:] = part[:, 1:] == part[:, :-1]
        part[repeated] = generator.integers(0, cols, np.count_nonzero(repeated), dtype=index)
        part.sort(axis=1)
        columns[unsettled] = part
        unsettled = unsettled[repeated.any(axis=1)]
    return columns
