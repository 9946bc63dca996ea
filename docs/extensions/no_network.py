"""Whoever looks at a page without a network must see all of it: what a page loads is a file of the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

#: What a browser fetches by itself, which a link is not.
_FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["'](?:https?:)?//[^"']+"""
    r"""|<link\b(?=[^>]*rel=["'](?:stylesheet|preload|preconnect|icon)["'])[^>]*href=["'](?:https?:)?//[^"']+"""
    r"""|(?:@import\s+(?:url\()?|url\()["']?(?:https?:)?//[^"')]+"""
)


def refuse_fetched(folder: Path) -> None:
    """Raise if a page or a style sheet of a folder loads anything from elsewhere."""
    found = [
        f"{path.relative_to(folder)}: {match[0]}"
        for path in sorted(folder.rglob("*"))
        if path.suffix in {".html", ".css"}
        for match in _FETCHED.finditer(path.read_text(encoding="utf-8"))
    ]
    if found:
        raise ExtensionError("; ".join(found) + ": expected files of the site; bring them along")


def _on_finished(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        refuse_fetched(Path(app.outdir))


def setup(app: Any) -> dict[str, bool]:
    """Look at the site when it is built."""
    app.connect("build-finished", _on_finished)
    return {"parallel_read_safe": True}
