"""`tamis completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

_SHELLS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}
_VARIABLE = "_TAMIS_COMPLETE"  # in which click looks for what a shell asks


@click.command()
@click.argument("shell", metavar="SHELL", type=click.Choice(list(_SHELLS)))
def completion(shell: str) -> None:
    """Print a script that makes SHELL complete the commands and options of tamis.

    \b
    bash: tamis completion bash > ~/.local/share/bash-completion/completions/tamis
    zsh:  tamis completion zsh > DIR/_tamis, where DIR is a folder of $fpath
    fish: tamis completion fish > ~/.config/fish/completions/tamis.fish
    """
    tamis = click.get_current_context().find_root().command
    click.echo(_SHELLS[shell](tamis, {}, "tamis", _VARIABLE).source())
