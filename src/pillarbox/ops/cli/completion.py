"""`pillarbox completion`: what a shell needs to complete our commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_PILLARBOX_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Examples:
      pillarbox completion bash > ~/.local/share/bash-completion/completions/pillarbox
      pillarbox completion zsh > ~/.zfunc/_pillarbox
      pillarbox completion fish > ~/.config/fish/completions/pillarbox.fish
    """
    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(script(context.find_root().command, {}, "pillarbox", VARIABLE).source())
