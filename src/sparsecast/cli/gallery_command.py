"""sparsecast gallery."""

from __future__ import annotations

from sparsecast.cli import options


def command(as_json: options.JsonOption = False) -> None:
    """List the matrices that gallery:NAME?key=value makes, with their parameters."""
    from sparsecast.matrices.gallery import gallery_names, gallery_parameters, gallery_summary
    from sparsecast.reports import tables

    listed = {name: (gallery_parameters(name), gallery_summary(name)) for name in gallery_names()}
    described = {name: {"parameters": own, "summary": text} for name, (own, text) in listed.items()}
    options.show(as_json, described, tables.gallery(listed))
