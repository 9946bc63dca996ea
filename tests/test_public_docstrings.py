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


def test_no_public_function_has_more_than_six_parameters() -> None:
    functions = {name: getattr(sc, name) for name in sc.__all__ if inspect.isfunction(getattr(sc, name))}
    functions |= dict(inspect.getmembers(sc.Session, inspect.isfunction))
    counts = {
        name: len([p for p in inspect.signature(function).parameters if p != "self"])
        for name, function in functions.items()
        if not name.startswith("_")
    }
    assert {name: count for name, count in counts.items() if count > 6} == {}


def test_options_of_a_session_are_the_fields_of_what_documents_them() -> None:
    from dataclasses import fields

    from sparsecast.api.settings import SessionOptions, Setting, Trust

    documented = [field.name for kind in (Setting, Trust) for field in fields(kind)]
    assert set(documented) == set(SessionOptions.__annotations__)
    for kind in (Setting, Trust):
        assert not [field.name for field in fields(kind) if field.name not in (kind.__doc__ or "")]
