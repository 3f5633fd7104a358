"""`magnetar metadata repair`: report damaged metadata, and continue with what is intact."""

import os
from pathlib import Path
from typing import Any

import click

from magnetar.cli.flags import load_settings, setting_options
from magnetar.operator_error import OperatorError

ACCEPT = "--accept-loss"


@click.group()
def metadata() -> None:
    """Maintain the metadata: the catalog, cursors, policies, the list of ledgers."""


def _repair(config: str | None, accept_loss: bool, **options: Any) -> None:
    from magnetar.core.kernel.errors import BrokerError
    from magnetar.core.metadata import repair
    from magnetar.core.metadata.history import Names, hold
    from magnetar.process.data_directory import METADATA
    from magnetar.process.data_directory import existing as data_directory

    settings = load_settings(config, options).settings
    with data_directory(settings.storage.data_dir) as folder:
        path: Path = folder / METADATA
        try:
            with os.fdopen(hold(Names(path))):  # a server may use it under another path
                found = repair.examine(path)
                repair.report(found, click.echo)
                if found.damage and accept_loss:
                    repair.accept(path, found)
                    click.echo("repaired: damaged files are kept beside the new ones as *.damaged")
        except (BrokerError, OSError) as error:
            raise OperatorError(str(error)) from error
    if found.damage and not accept_loss:
        raise OperatorError(f"nothing was changed; {ACCEPT} continues with what is intact")


metadata.add_command(
    click.Command(
        "repair",
        callback=_repair,
        params=[
            *setting_options(),
            click.Option(
                [ACCEPT],
                is_flag=True,
                help="Continue with what is intact. Without this flag nothing is changed.",
            ),
        ],
        help="Report damage in the metadata and what can be recovered; the server must be stopped.",
    )
)
