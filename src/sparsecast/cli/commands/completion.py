"""sparsecast completion SHELL."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsecast.cli.commands import Panel, command
from sparsecast.cli.completing import VARIABLE
from sparsecast.cli.output import Output
from sparsecast.errors import InputError, remedy_for
from sparsecast.system.tabular import keys

#: The documents of commands, by how they are called.
DOCUMENTS = {"completion": keys("shell", "script")}

_SHELLS = ("bash", "zsh", "fish")


@command("completion", Panel.SHELL)
def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell to complete for.")],
) -> Output:
    """Print what lets a shell complete commands, options, matrices and names; source it.

    For bash: eval "$(sparsecast completion bash)" in ~/.bashrc.
    """
    if shell not in _SHELLS:
        remedy = remedy_for(shell, _SHELLS, "name one of them")
        raise InputError(f"shell '{shell}': expected one of {', '.join(_SHELLS)}; {remedy}")
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="sparsecast", complete_var=VARIABLE, shell=shell)
    if shell == "bash":
        # Bash takes a colon for the end of a word, and gallery:NAME is one.
        script = script.replace("-o default", "-o default -o filenames")
        script = "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}\n" + script
    return Output(DOCUMENTS["completion"], {"shell": shell, "script": script}, [script])
