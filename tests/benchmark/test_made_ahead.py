"""Matrices that are made several at once."""

import pytest

from sparsecast.benchmark.run import MadeAhead
from sparsecast.errors import InputError
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.suites import SuiteMatrix


def suite_matrices(made, entries=10):
    def matrix(number):
        problem = Problem.named(f"varied?rows={100 + number}&mean_length=3&lengths=fixed&reach=1")
        make = problem._make

        def counted():
            made.append(number)
            return make()

        problem._make, problem.expected_nnz = counted, entries
        return SuiteMatrix(problem, "varied")

    return [matrix(number) for number in range(5)]


@pytest.mark.parametrize(("cores", "most", "at_once"), [(1, 1000, 1), (3, 1000, 3), (8, 1000, 5), (8, 25, 2)])
def test_as_many_are_made_as_there_are_cores_and_room_for(cores, most, at_once):
    made = []
    matrices = suite_matrices(made)
    ahead = MadeAhead(most, cores)
    is_new, first = ahead.take(matrices[0], [*matrices[:1], *matrices[1:]])
    assert is_new and first.matrix.shape[0] == 100 and sorted(made) == list(range(at_once))
    assert ahead.take(matrices[0], matrices[1:]) == (False, first)
    for number, matrix in enumerate(matrices[1:], 1):
        is_new, problem = ahead.take(matrix, matrices[number + 1 :])
        assert is_new and problem.structure.rows == 100 + number
    assert sorted(made) == list(range(5)), "each is made once"


def test_one_that_cannot_be_made_says_so_where_it_is_used():
    good, bad = suite_matrices([])[:2]

    def refuse():
        raise InputError("no")

    bad.problem._make = refuse
    ahead = MadeAhead(1000, 2)
    assert ahead.take(good, [bad])[1].matrix.shape[0] == 100
    _, unmade = ahead.take(bad, [])
    with pytest.raises(InputError):
        unmade.matrix  # noqa: B018
