"""What networkx asks of a backend whenever it is imported: in a module that loads nothing."""

from __future__ import annotations

from typing import Any


def information() -> dict[str, Any]:
    """Return what networkx shows of the backend."""
    names = "pagerank", "eigenvector_centrality", "katz_centrality", "hits"
    summary = "Measures of nodes by sparse products in the format that suits the machine."
    functions = {name: {"additional_docs": "Compiled products on all threads."} for name in names}
    return {"backend_name": "sparsecast", "short_summary": summary, "functions": functions}
