"""sparsecast manual: the page for man, made of the help of the commands."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from typer.main import get_command

from sparsecast.cli.main import build
from sparsecast.cli.manual import EXAMPLES


@pytest.fixture(scope="module")
def group():
    return get_command(build())


@pytest.fixture
def page(run):
    done = run("manual")
    assert (done.status, done.err) == (0, "")
    return done.out


def leaves(group, path):
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if hasattr(command, "commands"):
            yield from leaves(command, f"{path} {name}")


def test_every_command_is_there_with_every_option(page, group):
    sections = {part.partition("\n")[0]: part for part in page.split(".SS ")[1:]}
    found = dict(leaves(group, "sparsecast"))
    assert {f"\\fB{path}\\fR" for path in found} == set(sections)
    for path, command in found.items():
        own = sections[f"\\fB{path}\\fR"]
        for parameter in command.params:
            names = [*parameter.opts, *parameter.secondary_opts]
            names = names if parameter.param_type_name == "option" else [parameter.metavar]
            assert all(name.replace("-", r"\-") in own for name in names), (path, names)


def test_the_examples_are_commands_that_can_be_typed(group):
    for example in EXAMPLES:
        words = shlex.split(example.partition(">")[0])
        command = group.commands[words[1]]
        command.make_context(words[1], words[2:])


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff here to read the page")
def test_groff_reads_the_page_without_a_warning(page):
    shown = subprocess.run(
        ["groff", "-man", "-ww", "-Tascii", "-P-cbou"], input=page, capture_output=True, text=True, check=True
    )
    assert shown.stderr == ""
    text = " ".join(shown.stdout.split())
    for title in ("SYNOPSIS", "COMMANDS", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES"):
        assert title in text
    assert ".mtx.gz" in text and "SPARSECAST_HOME" in text and "gallery:NAME?key=value" in text
