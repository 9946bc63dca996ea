"""The documents: links lead to files, pages name all packages, toys and decisions, short pages stay short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "examples/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts]
SHORT_PAGES = [("README.md", 120), ("docs/design.md", 130), ("docs/glossary.md", 44)]


def test_links_lead_to_files():
    broken = [
        f"{page}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert broken == []


@pytest.mark.parametrize(("page", "most"), SHORT_PAGES)
def test_short_pages_stay_short(page, most):
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= most


def test_every_toy_is_named_where_its_change_is_described():
    text = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
    toys = {path.parent.name for path in (ROOT / "tests/proof/toys").glob("*/pyproject.toml")}
    assert {toy for toy in toys if f"`{toy}`" not in text} == set()


def test_the_map_names_every_package():
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in (ROOT / "src/sparsecast").glob("*/__init__.py")}
    assert {name for name in packages if not re.search(rf"^[| ] .*\b{name}\b", text, re.MULTILINE)} == set()


def test_every_decision_is_listed():
    folder = ROOT / "docs/decisions"
    listed = re.findall(r"\((0\d{3}-[\w-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8"))
    assert listed == sorted(path.name for path in folder.glob("0*.md"))
