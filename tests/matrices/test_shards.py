"""Shards: each matrix in one of them, whatever the order, the folder and the number of processes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.api.matrices import named_problems
from sparsecast.errors import InputError
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.shards import Shard

TASK = {"ID": "5", "MIN": "3", "MAX": "10", "COUNT": "8"}


@given(st.sets(st.integers(1, 10_000), max_size=40), st.integers(1, 12))
def test_each_matrix_is_in_one_shard(sizes, count):
    problems = [Problem.named(f"gallery:banded?n={n}") for n in sizes]
    shards = [Shard(number, count) for number in range(1, count + 1)]
    assert all(sum(shard.has(problem) for shard in shards) == 1 for problem in problems)


def test_shards_are_of_like_size():
    problems = [Problem.named(f"gallery:banded?n={n}") for n in range(1, 3001)]
    sizes = [sum(Shard(number, 8).has(problem) for problem in problems) for number in range(1, 9)]
    assert sum(sizes) == 3000 and max(sizes) < 1.3 * min(sizes)


def test_a_file_is_in_the_same_shard_in_whatever_folder_and_is_not_read_for_it(tmp_path):
    names = [f"m{number}.mtx" for number in range(20)]
    found = [
        [name for name in names if Shard(1, 3).has(Problem.named(folder / name))]
        for folder in (tmp_path, tmp_path / "copy")
    ]
    assert found[0] == found[1] and 0 < len(found[0]) < 20


def test_the_order_of_the_matrices_does_not_matter():
    names = [f"gallery:banded?n={n}" for n in range(40, 60)]
    one, other = (set(named_problems(order, Shard(2, 3))[0]) for order in (names, names[::-1]))
    assert one == other


@pytest.mark.parametrize(
    "text", ["9/8", "0/8", "x", "", "8", "-1/8", "1/0", "0/0", "1/2/3", "1.0/2", "slurm"]
)
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(InputError):
        Shard.of(text)


@pytest.mark.parametrize(
    ("changed", "shard"),
    [({}, Shard(3, 8)), ({"ID": "3"}, Shard(1, 8)), ({"MAX": "17"}, None), ({"COUNT": "x"}, None)],
)
def test_the_shard_of_a_task_is_its_place_in_an_array_without_gaps(monkeypatch, changed, shard):
    for name, value in (TASK | changed).items():
        monkeypatch.setenv(f"SLURM_ARRAY_TASK_{name}", value)
    if shard is None:
        with pytest.raises(InputError):
            Shard.of("slurm")
    else:
        assert Shard.of("slurm") == shard
