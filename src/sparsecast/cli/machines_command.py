"""sparsecast machines."""

from __future__ import annotations

from sparsecast.cli import options


def command(as_json: options.JsonOption = False) -> None:
    """Describe this machine and list the profiles at hand."""
    from sparsecast import api
    from sparsecast.machines.profile import Profile
    from sparsecast.reports import documents, tables

    here, known = api.machines()
    usable = {name: found for name, found in known.items() if isinstance(found, Profile)}
    contents = {name: f"cannot be used: {found}" for name, found in known.items()}
    contents |= {name: api.contents(found) for name, found in usable.items()}
    bandwidths = {name: found.bandwidths for name, found in usable.items() if found.bandwidths}
    disturbed = {
        name: [f"{what}: {why.sentence()}" for what, why in api.disturbances(found).items()]
        for name, found in usable.items()
    }
    options.warn(f"{name}, {sentence}" for name, own in disturbed.items() for sentence in own)
    document = {
        "machine": documents.machine(here),
        "profiles": contents,
        "bandwidths": {name: documents.bandwidths(own) for name, own in bandwidths.items()},
        "disturbances": disturbed,
    }
    options.show(as_json, document, tables.machines(here, contents, bandwidths))
