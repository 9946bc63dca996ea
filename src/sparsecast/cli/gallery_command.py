"""sparsecast gallery."""

from __future__ import annotations

from sparsecast.cli.options import JsonOption, page, print_document


def command(as_json: JsonOption = False) -> None:
    """List the matrices that gallery:NAME?key=value makes, with their parameters."""
    from sparsecast.matrices.gallery import gallery_names, gallery_parameters, gallery_summary
    from sparsecast.reports import tables

    listed = {name: (gallery_parameters(name), gallery_summary(name)) for name in gallery_names()}
    if as_json:
        print_document(
            {name: {"parameters": defaults, "summary": text} for name, (defaults, text) in listed.items()}
        )
    else:
        page().print(tables.gallery(listed))
