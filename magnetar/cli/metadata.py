"""`magnetar metadata repair`: what is left of damaged metadata, and going on with that."""

import os
from pathlib import Path
from typing import Any

import click

from magnetar.cli.flags import load_settings, setting_options
from magnetar.operator_error import OperatorError

ACCEPT = "--accept-loss"


@click.group()
def metadata() -> None:
    """Look after the metadata: the catalog, cursors, policies, the list of ledgers."""


def _repair(config: str | None, accept_loss: bool, **options: Any) -> None:
    from magnetar.compose import METADATA
    from magnetar.core.kernel.errors import BrokerError
    from magnetar.core.metadata import repair
    from magnetar.core.metadata.history import Names, hold
    from magnetar.data_directory import existing as data_directory

    settings = load_settings(config, options).settings
    with data_directory(settings.storage.data_dir) as folder:
        path: Path = folder / METADATA
        try:
            with os.fdopen(hold(Names(path))):  # a server may have come by another way
                found = repair.examine(path)
                repair.report(found, click.echo)
                if found.damage and accept_loss:
                    repair.accept(path, found)
                    click.echo("repaired: damaged files are kept beside the new ones as *.damaged")
        except (BrokerError, OSError) as error:
            raise OperatorError(str(error)) from error
    if found.damage and not accept_loss:
        raise OperatorError(f"nothing was changed; {ACCEPT} goes on with what can be had")


metadata.add_command(
    click.Command(
        "repair",
        callback=_repair,
        params=[
            *setting_options(),
            click.Option(
                [ACCEPT],
                is_flag=True,
                help="Go on with what can be had. Without it nothing is changed.",
            ),
        ],
        help="Say what is damaged in the metadata and what of it can be had; the server must be "
        "stopped.",
    )
)
