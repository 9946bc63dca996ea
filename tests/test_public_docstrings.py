"""Public names have docstrings that say what goes in, what comes out, and what is raised."""

from __future__ import annotations

import inspect

import pytest

import sparsecast as sc


@pytest.mark.parametrize("name", sc.__all__)
def test_a_public_name_says_what_it_is_for(name: str) -> None:
    description = inspect.getdoc(getattr(sc, name))
    assert description and description.splitlines()[0].endswith(".")


@pytest.mark.parametrize("name", [name for name in sc.__all__ if inspect.isfunction(getattr(sc, name))])
def test_a_public_function_names_its_parameters(name: str) -> None:
    function = getattr(sc, name)
    description = inspect.getdoc(function) or ""
    parameters = list(inspect.signature(function).parameters)
    assert not parameters or "Parameters\n----------" in description
    assert not [p for p in parameters if p not in description]
