"""`magnetar bookie rebuild-index | repair`: rebuild the indexes, drop a damaged journal."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from magnetar.cli.flags import load_settings, setting_options
from magnetar.cli.metadata import ACCEPT
from magnetar.operator_error import OperatorError
from magnetar.settings import Settings


@click.group()
def bookie() -> None:
    """Maintain the bookie: entries, their index, the journal. The server must be stopped."""


@contextmanager
def _stopped(settings: Settings) -> Iterator[Path]:
    """The data directory of a stopped server; errors become an `OperatorError`."""
    from magnetar.compose import BOOKIE
    from magnetar.core.kernel.errors import BrokerError
    from magnetar.process import logs
    from magnetar.process.data_directory import existing

    logs.configure(settings.log)
    with existing(settings.storage.data_dir) as folder:
        if not (folder / BOOKIE / "ledgers" / "current").is_dir():
            raise OperatorError(f"there is no bookie in {folder}")
        try:
            yield folder
        except (BrokerError, OSError) as error:
            raise OperatorError(str(error)) from error


def _rebuild_index(config: str | None, **options: Any) -> None:
    import trio

    from magnetar.bookie.machine.disk import SystemDisk
    from magnetar.bookie.recovery.repair import note_wear
    from magnetar.bookie.server.directories import claim
    from magnetar.compose import BOOKIE

    settings = load_settings(config, options).settings
    with _stopped(settings) as folder:
        # The claim fails while a bookie runs: its indexes are left alone.
        with claim(SystemDisk(), str(folder / BOOKIE)) as directories:
            note_wear(directories, "an operator asked to rebuild the index {}")
        trio.run(_opened_once, folder, settings)
    click.echo("rebuilt")


async def _opened_once(folder: Path, settings: Settings) -> None:
    """Start and stop the bookie: the start rebuilds the indexes."""
    from magnetar import part_settings
    from magnetar.bookie.embedded import open_embedded
    from magnetar.compose import BOOKIE, METADATA, damaged
    from magnetar.core.kernel.errors import Corrupted
    from magnetar.core.metadata.embedded import open_embedded as open_metadata

    failed = logging.getLogger(__name__).critical
    bookie, part = part_settings.bookie_settings(settings), METADATA
    try:
        async with open_metadata(folder / METADATA, on_fatal=failed) as metadata:
            part = BOOKIE
            async with open_embedded(folder / BOOKIE, metadata, bookie, on_fatal=failed):
                pass
    except Corrupted as error:  # something that is opened before the indexes is damaged
        raise OperatorError(damaged(folder, part, error)) from error


def _repair(config: str | None, accept_loss: bool, **options: Any) -> None:
    from magnetar.bookie.client.store import MASTER_KEY
    from magnetar.bookie.machine.disk import SystemDisk
    from magnetar.bookie.recovery import repair
    from magnetar.bookie.server.directories import claim
    from magnetar.compose import BOOKIE
    from magnetar.core.kernel.clock import SystemClock

    settings = load_settings(config, options).settings
    with (
        _stopped(settings) as folder,
        claim(SystemDisk(), str(folder / BOOKIE)) as directories,
    ):
        found = repair.examine(directories)
        for trouble in found.troubles or ["the journal is intact"]:
            click.echo(trouble)
        if found.troubles and not accept_loss:
            raise OperatorError(
                f"nothing was changed; {ACCEPT} drops what cannot be read: messages "
                "since the last checkpoint, a few seconds of them, may be lost"
            )
        if found.troubles:
            count = repair.accept(directories, found, MASTER_KEY, SystemClock().wall_ms())
            click.echo(
                f"repaired: {count} entries were found in damaged journals, which are kept as "
                "*.damaged; the next start rebuilds the index and reports what is lost"
            )


def _command(name: str, callback: Callable[..., None], text: str, *more: click.Parameter) -> None:
    params = [*setting_options(), *more]
    bookie.add_command(click.Command(name, callback=callback, params=params, help=text))


_command(
    "rebuild-index",
    _rebuild_index,
    "Rebuild the indexes from the entry logs and the journal.",
)
_command(
    "repair",
    _repair,
    "Report damage in the journal; with --accept-loss, drop what is damaged.",
    click.Option(
        [ACCEPT],
        is_flag=True,
        help="Drop what cannot be read. Without this flag nothing is changed.",
    ),
)
