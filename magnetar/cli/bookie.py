"""`magnetar bookie`: run a bookie alone; `rebuild-index`, `repair`: mend a stopped one."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from magnetar.cli.cluster_metadata import URI_VARIABLE
from magnetar.cli.flags import load_settings, number, port_number, setting_options
from magnetar.cli.metadata import ACCEPT
from magnetar.operator_error import OperatorError
from magnetar.settings import Settings

RUN_FLAGS = (
    "--data-dir", "--host", "--advertised-host", "--tls-certificate", "--tls-key",
    "--tls-client-ca", "--no-sync", "--ready-file", "--log-level", "--log-format",
)  # fmt: skip
"""Those of the settings' flags that concern a bookie."""
PORT = 3181
"""Apache's default (`bookiePort`)."""


def _run(
    context: click.Context,
    config: str | None,
    port: int,
    **options: Any,
) -> None:
    if context.invoked_subcommand is not None:
        return
    if options["with_recovery"] and not options["metadata_uri"]:
        raise OperatorError("--with-recovery is for a bookie of a cluster: say which")
    from functools import partial

    from magnetar import bookie_identity, bookie_server, server

    settings = load_settings(config, options).settings
    chosen = bookie_identity.BookieOptions(
        port,
        options["bookie_id"],
        options["metadata_uri"],
        options["zk_timeout"],
        options.pop("http_port"),
        options["journal_dir"],
        directory_list(options["ledger_dirs"]),
        options["with_recovery"],
        options["allow_storage_expansion"],
    )
    serve = partial(bookie_server.serve, chosen)
    context.exit(server.run(settings, config=config or "", serve=serve))


def directory_list(text: str) -> tuple[str, ...]:
    """The directories that `--ledger-dirs` names."""
    return tuple(filter(None, (one.strip() for one in text.split(","))))


def _run_options() -> list[click.Parameter]:
    return [
        *setting_options(RUN_FLAGS),
        click.Option(["--port"], type=port_number(), default=PORT, show_default=True, metavar="N",
                     help="Port for clients of Apache BookKeeper; 0 for any free one."),
        click.Option(["--bookie-id"], default="", metavar="TEXT",
                     help="Name in the metadata of ledgers; the address by default."),
        click.Option(["--metadata-uri"], default="", metavar="URI", envvar=URI_VARIABLE,
                     help="The cluster to join, such as zk+hierarchical://HOST:2181/ledgers; "
                     "without it, the bookie runs alone and deletes nothing "
                     f"(also {URI_VARIABLE})."),
        click.Option(["--zk-timeout"], type=number(0.1), default=10.0,
                     show_default=True, metavar="SECONDS", help="Of the session with ZooKeeper."),
        click.Option(["--http-port"], type=port_number(), default=None, metavar="N",
                     help="Port of Apache's HTTP paths and of metrics; 0 for any free one. "
                     "Without it there is no HTTP."),
        click.Option(["--journal-dir"], default="", metavar="DIR",
                     help="Directory of the journal; by default in the data directory."),
        click.Option(["--ledger-dirs"], default="", metavar="DIR,DIR",
                     help="Directories of entry logs, the first also of the indexes; by default "
                     "one in the data directory."),
        click.Option(["--allow-storage-expansion"], is_flag=True,
                     help="Take new and empty directories besides those that the bookie has."),
        click.Option(["--with-recovery"], is_flag=True,
                     help="Repair ledgers of the cluster as well, like `magnetar recovery`."),
    ]  # fmt: skip


bookie = click.Group(
    "bookie",
    callback=click.pass_context(_run),
    params=_run_options(),
    invoke_without_command=True,
    help="Run a bookie for clients of Apache BookKeeper, until SIGTERM or SIGINT. The commands "
    "below maintain one, also that of a whole server, which must be stopped.",
)


@contextmanager
def _stopped(settings: Settings) -> Iterator[Path]:
    """The data directory of a stopped server; errors become an `OperatorError`."""
    from magnetar.core.kernel.errors import BrokerError
    from magnetar.process import logs
    from magnetar.process.data_directory import BOOKIE, existing

    logs.configure(settings.log)
    with existing(settings.storage.data_dir) as folder:
        if not (folder / BOOKIE / "ledgers" / "current").is_dir():
            raise OperatorError(f"there is no bookie in {folder}")
        _refuse_alone(folder / BOOKIE / "ledgers" / "current")
        try:
            yield folder
        except (BrokerError, OSError) as error:
            raise OperatorError(str(error)) from error


def _refuse_alone(ledgers: Path) -> None:
    """Refuse the directory of a bookie that serves BookKeeper's clients, which have keys and
    digests that these commands do not know.
    """
    from magnetar.bookie.format import cookie
    from magnetar.bookie.server.settings import BookieSettings

    try:
        found = cookie.decode((ledgers / cookie.VERSION_FILE).read_text()).bookie_id
    except (OSError, ValueError):
        return  # it is refused, or repaired, as that of a whole server
    if found != BookieSettings().bookie_id:
        raise OperatorError(
            f"{ledgers} is that of the bookie {found}, which is not part of a whole server: this "
            "command knows those only. Indexes are rebuilt by its next start if they are deleted"
        )


def _rebuild_index(config: str | None, **options: Any) -> None:
    import trio

    from magnetar.bookie.machine.disk import SystemDisk
    from magnetar.bookie.recovery.repair import note_wear
    from magnetar.bookie.server.directories import claim
    from magnetar.process.data_directory import BOOKIE

    settings = load_settings(config, options).settings
    with _stopped(settings) as folder:
        # The claim fails while a bookie runs: its indexes are left alone.
        with claim(SystemDisk(), str(folder / BOOKIE)) as directories:
            note_wear(directories, "an operator asked to rebuild the index {}")
        trio.run(_opened_once, folder, settings)
    click.echo("rebuilt")


async def _opened_once(folder: Path, settings: Settings) -> None:
    """Start and stop the bookie: the start rebuilds the indexes."""
    from magnetar.bookie.embedded import open_embedded
    from magnetar.core.kernel.errors import Corrupted
    from magnetar.core.metadata.embedded import open_embedded as open_metadata
    from magnetar.process.data_directory import BOOKIE, METADATA, damaged
    from magnetar.shared_settings import bookie_settings

    failed = logging.getLogger(__name__).critical
    bookie, part = bookie_settings(settings), METADATA
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
    from magnetar.core.kernel.clock import SystemClock
    from magnetar.process.data_directory import BOOKIE

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
