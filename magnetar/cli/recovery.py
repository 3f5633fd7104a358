"""`magnetar recovery`: Apache's AutoRecovery, an auditor and a replication worker. And what all of
a cluster are told through its metadata: `magnetar bookie autorecovery`, `who-is-auditor`,
`trigger-audit`, `lost-bookie-recovery-delay`, as by Apache's shell.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from magnetar.cli.cluster_metadata import in_cluster, uri_option
from magnetar.cli.flags import load_settings, number, port_number, setting_options, whole_number
from magnetar.cli.printing import json_option, print_json
from magnetar.operator_error import OperatorError

if TYPE_CHECKING:
    from magnetar.bookie.cluster.cluster import BookKeeperCluster
    from magnetar.bookie.replication.settings import RecoverySettings
    from magnetar.core.metadata.zookeeper.store import ZooKeeperMetadata
    from magnetar.core.ports.bookie_administration import ReplicationDetails

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
        click.Option(["--ledger-verification-percentage"], type=whole_number(0, 100), default=0,
                     show_default=True, metavar="N",
                     help="How many of the entries between the first and the last ones such a "
                     "check reads of each bookie, in percent."),
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
        verification_percentage=options.pop("ledger_verification_percentage"),
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


def _autorecovery(metadata_uri: str, enable: bool, disable: bool, as_json: bool) -> None:
    """Print the state, after changing it if that is asked for; it may be so already."""
    from magnetar.bookie.cluster.overview import ClusterOverview

    if enable and disable:
        raise OperatorError("give --enable or --disable, and not both")

    async def change(
        store: "ZooKeeperMetadata", cluster: "BookKeeperCluster"
    ) -> "tuple[ReplicationDetails, int | None]":
        overview = ClusterOverview(store, cluster)
        if enable or disable:
            await overview.recovery.switch(enabled=enable)
        return await overview.replication(), await overview.recovery.delay()

    found, seconds = in_cluster(metadata_uri, change)
    if as_json:
        print_json(
            {
                "enabled": found.enabled,
                "auditor": found.auditor,
                "under_replicated": found.under_replicated,
                "lost_bookie_recovery_delay": seconds,
            }
        )
        return
    click.echo(f"autorecovery is {'enabled' if found.enabled else 'disabled'}")
    click.echo(f"auditor: {found.auditor or 'nobody'}")
    click.echo(f"lost bookie recovery delay: {'not set' if seconds is None else f'{seconds} s'}")
    waiting = "there are" if found.under_replicated else "there are no"
    click.echo(f"{waiting} ledgers that wait for repair")


def _who_is_auditor(metadata_uri: str, as_json: bool) -> None:
    from magnetar.bookie.cluster.overview import ClusterOverview

    async def ask(store: "ZooKeeperMetadata", cluster: "BookKeeperCluster") -> str | None:
        return (await ClusterOverview(store, cluster).replication()).auditor

    found = in_cluster(metadata_uri, ask)
    if as_json:
        print_json({"auditor": found})
    else:
        click.echo(found or "nobody is the auditor")


def _trigger_audit(metadata_uri: str, as_json: bool) -> None:
    from magnetar.bookie.cluster.recovery_control import RecoveryControl

    async def trigger(store: "ZooKeeperMetadata", cluster: "BookKeeperCluster") -> str:
        return await RecoveryControl(store, cluster).trigger_audit()

    found = in_cluster(metadata_uri, trigger)
    if as_json:
        print_json({"auditor": found})
    else:
        click.echo(f"asked {found} for an audit")


def _delay(seconds: int | None, metadata_uri: str, as_json: bool) -> None:
    from magnetar.bookie.cluster.under_replication import UnderReplication

    async def change(
        store: "ZooKeeperMetadata", cluster: "BookKeeperCluster"
    ) -> tuple[int, int] | None:
        marks = UnderReplication(store, cluster)
        if seconds is not None:
            await marks.prepare()
            await marks.set_delay(seconds)
        return await marks.delay()

    found = in_cluster(metadata_uri, change)
    if found is None:
        raise OperatorError("no delay is set; the first auditor will set one")
    if as_json:
        print_json({"lost_bookie_recovery_delay": found[0]})
    else:
        click.echo(f"{found[0]} s")


def switches() -> list[click.Command]:
    """Commands of `magnetar bookie`."""

    def command(name: str, callback: Any, text: str, *params: click.Parameter) -> click.Command:
        shared = [uri_option(), json_option()]
        return click.Command(name, callback=callback, params=[*params, *shared], help=text)

    return [
        command(
            "autorecovery",
            _autorecovery,
            "Print whether lost bookies are looked for, and by whom; switch that on or off.",
            click.Option(["--enable"], is_flag=True,
                         help="Let auditors and replication workers go on."),
            click.Option(["--disable"], is_flag=True,
                         help="Suspend them, as for maintenance."),
        ),
        command("who-is-auditor", _who_is_auditor, "Print who looks for lost bookies."),
        command(
            "trigger-audit",
            _trigger_audit,
            "Have the auditor look at all bookies now, also with a delay.",
        ),
        command(
            "lost-bookie-recovery-delay",
            _delay,
            "Print how long one bookie may be away before its ledgers are repaired, or set that.",
            click.Argument(["seconds"], type=whole_number(0), required=False,
                           metavar="[SECONDS]"),
        ),
    ]  # fmt: skip
