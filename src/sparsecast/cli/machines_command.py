"""sparsecast machines."""

from __future__ import annotations

from sparsecast.cli.options import JsonOption, page, print_document, warn


def command(as_json: JsonOption = False) -> None:
    """Describe this machine and list the profiles at hand."""
    from sparsecast import api
    from sparsecast.machines.profile import Profile
    from sparsecast.reports import documents, tables

    here, known = api.machines()
    contents = {
        name: api.contents(found) if isinstance(found, Profile) else f"cannot be used: {found}"
        for name, found in known.items()
    }
    bandwidths = {
        name: found.bandwidths
        for name, found in known.items()
        if isinstance(found, Profile) and found.bandwidths
    }
    disturbed = {
        name: [f"{what}: {why.sentence()}" for what, why in api.disturbances(found).items()]
        for name, found in known.items()
        if isinstance(found, Profile)
    }
    warn(f"{name}, {sentence}" for name, own in disturbed.items() for sentence in own)
    if as_json:
        measured = {name: documents.bandwidths(own) for name, own in bandwidths.items()}
        print_document(
            {
                "machine": documents.machine(here),
                "profiles": contents,
                "bandwidths": measured,
                "disturbances": disturbed,
            }
        )
    else:
        page().print(tables.machines(here, contents, bandwidths))
