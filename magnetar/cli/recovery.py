"""`magnetar recovery`: Apache's AutoRecovery, an auditor and a replication worker."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from magnetar.cli.cluster_metadata import uri_option
from magnetar.cli.flags import load_settings, number, port_number, setting_options, whole_number

if TYPE_CHECKING:
    from magnetar.bookie.replication.settings import RecoverySettings

RUN_FLAGS = ("--host", "--ready-file", "--log-level", "--log-format")
"""Those of the settings' flags that concern it."""


def recovery_options() -> list[click.Parameter]:
    """How ledgers are repaired, also by a bookie that does it."""
    return [
        click.Option(["--lost-bookie-recovery-delay"], type=whole_number(0), default=0,
                     show_default=True, metavar="SECONDS",
                     help="How long one bookie may be away before its ledgers are repaired; holds "
                     "until the cluster's metadata have another value."),
        click.Option(["--open-ledger-grace-period"], type=number(0), default=30.0,
                     show_default=True, metavar="SECONDS",
                     help="How long the writer of an open ledger may take to replace a lost bookie "
                     "before the ledger is closed for it."),
        click.Option(["--failed-ledger-pause"], type=number(0), default=300.0,
                     show_default=True, metavar="SECONDS",
                     help="The longest pause before a ledger that could not be repaired is tried "
                     "again; the first is a 32nd of it."),
        click.Option(["--replication-rate-by-bytes"], type=whole_number(0), default=0,
                     show_default=True, metavar="N",
                     help="Bytes a second that are copied at most; 0 for no limit."),
        click.Option(["--check-all-ledgers-interval"], type=number(0),
                     default=604_800.0, show_default=True, metavar="SECONDS",
                     help="How often entries of all ledgers are read to see that they are there; 0 "
                     "for never."),
    ]  # fmt: skip


def recovery_settings(options: dict[str, Any]) -> "RecoverySettings":
    """Takes them out of a command's options."""
    from magnetar.bookie.replication.settings import RecoverySettings

    return RecoverySettings(
        lost_bookie_recovery_delay_seconds=options.pop("lost_bookie_recovery_delay"),
        open_ledger_grace_seconds=options.pop("open_ledger_grace_period"),
        failed_ledger_pause_seconds=options.pop("failed_ledger_pause"),
        bytes_per_second_max=options.pop("replication_rate_by_bytes"),
        check_all_ledgers_seconds=options.pop("check_all_ledgers_interval"),
    )


def _recovery(
    config: str | None, metadata_uri: str, zk_timeout: float, bookie_id: str, **options: Any
) -> None:
    from magnetar import recovery_server, server

    chosen = recovery_server.RecoveryOptions(
        metadata_uri, recovery_settings(options), zk_timeout, bookie_id, options.pop("http_port")
    )
    settings = load_settings(config, options).settings
    serve = partial(recovery_server.serve, chosen)
    code = server.run(
        settings,
        config=config or "",
        serve=serve,
        stored_at=f"on the bookies of {metadata_uri}, which are repaired",
    )
    click.get_current_context().exit(code)


recovery = click.Command(
    "recovery",
    callback=_recovery,
    params=[
        uri_option(),
        click.Option(["--zk-timeout"], type=number(0.1), default=10.0,
                     show_default=True, metavar="SECONDS", help="Of the session with ZooKeeper."),
        click.Option(["--bookie-id"], default="", metavar="TEXT",
                     help="Its name in votes and locks; HOST:3181 by default."),
        click.Option(["--http-port"], type=port_number(), default=None, metavar="N",
                     help="Port of `/metrics` and `/heartbeat`; 0 for any free one. Without it "
                     "there is no HTTP."),
        *recovery_options(),
        *setting_options(RUN_FLAGS),
    ],
    help="Repair the ledgers of a BookKeeper cluster whose bookies are lost, ours or Apache's, "
    "until SIGTERM or SIGINT. Several may run, also beside Apache's AutoRecovery.",
)  # fmt: skip
