"""`magnetar bookie decommission`, `recover`, `autorecovery`, `who-is-auditor`, `trigger-audit`,
`lost-bookie-recovery-delay`: what Apache's shell has by such names, in the same metadata.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from magnetar.cli.bookie_cluster import forget
from magnetar.cli.cluster_metadata import cluster_client, in_cluster, uri_option
from magnetar.cli.flags import whole_number
from magnetar.cli.printing import (
    FOUND_DAMAGE,
    json_line,
    json_option,
    print_json,
    progress,
    remark,
    report,
    sentences,
)
from magnetar.operator_error import OperatorError

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from magnetar.bookie.client.quorum.store import ClusterClient
    from magnetar.bookie.cluster.cluster import BookKeeperCluster
    from magnetar.bookie.cluster.under_replication import UnderReplication
    from magnetar.bookie.replication.bookie_recovery import PlannedFragment, RecoveredLedger
    from magnetar.core.metadata.zookeeper.store import ZooKeeperMetadata
    from magnetar.core.ports.bookie_administration import ReplicationDetails

NAME = "magnetar-cli:0"
"""In the locks of ledgers that a command repairs."""


LOOKS_A_LINE = 10
"""Of a command that waits and looks once a second."""


class Tools(NamedTuple):
    """What a command repairs ledgers with."""

    client: "ClusterClient"
    marks: "UnderReplication"


@asynccontextmanager
async def _tools(store: "ZooKeeperMetadata", cluster: "BookKeeperCluster") -> AsyncIterator[Tools]:
    from magnetar.bookie.cluster.under_replication import UnderReplication

    marks = UnderReplication(store, cluster)
    await marks.prepare()
    async with cluster_client(store, cluster) as (client, _):
        yield Tools(client, marks)


class LedgersLeft:
    """Tells, on standard error, how many ledgers a decommission waits for: with a bar on a
    terminal, else with a line now and then.
    """

    def __init__(self, bar: "ProgressBar[Any]", bookie_id: str, auditor: str | None) -> None:
        self._bar = bar
        self._bookie_id = bookie_id
        self._auditor = auditor
        self._looks = 0

    def tell(self, count: int) -> None:
        """Called with each look, once a second."""
        if count and not self._looks and self._auditor is None:
            remark("nobody is the auditor: this waits until a recovery runs (`magnetar recovery`)")
        if count and self._bar.hidden and self._looks % LOOKS_A_LINE == 0:
            remark(f"{count} ledgers need the bookie {self._bookie_id}")
        self._looks += 1
        self._bar.length = max(self._bar.length or 1, count)
        self._bar.update(self._bar.length - count - self._bar.pos)


def _decommission(bookie_id: str, metadata_uri: str, as_json: bool) -> None:
    from magnetar.bookie.cluster.recovery_control import RecoveryControl
    from magnetar.bookie.replication.audits import Audits
    from magnetar.bookie.replication.decommission import Decommission
    from magnetar.bookie.replication.settings import RecoverySettings
    from magnetar.bookie.replication.statistics import ReplicationCounters
    from magnetar.core.kernel.clock import SystemClock

    async def wait(store: "ZooKeeperMetadata", cluster: "BookKeeperCluster") -> int:
        at_once = RecoverySettings().ledgers_at_once
        async with _tools(store, cluster) as (client, marks):
            audits = Audits(client, marks, SystemClock(), ReplicationCounters(), at_once)
            auditor = await RecoveryControl(store, cluster).auditor()
            with progress(1, "ledgers that are replicated", output=False) as bar:
                left = LedgersLeft(bar, bookie_id, auditor).tell
                return await Decommission(client, marks, audits).run(bookie_id, left)

    found = in_cluster(metadata_uri, wait)
    with sentences():
        forget(metadata_uri, bookie_id)
    if as_json:
        print_json({"bookie": bookie_id, "ledgers": found})
    else:
        click.echo(f"no ledger needs the bookie {bookie_id} any more; {found} did")


def _recover(
    bookies: tuple[str, ...],
    metadata_uri: str,
    ledger: int | None,
    dry_run: bool,
    skip_open: bool,
    as_json: bool,
) -> None:
    """Each fragment, or ledger, is a line; what could not be repaired is named. In the end it is
    said how many there were, or that nobody knows such bookies.
    """
    import random  # noqa: TID251  # this composes the ledger client

    from magnetar.bookie.replication.bookie_recovery import BookieRecovery
    from magnetar.bookie.replication.ledger_repair import LedgerRepair
    from magnetar.bookie.replication.marked_ledgers import MarkedLedgers
    from magnetar.bookie.replication.settings import RecoverySettings
    from magnetar.bookie.replication.statistics import ReplicationCounters
    from magnetar.core.kernel.errors import BrokerError

    async def recover(
        store: "ZooKeeperMetadata", cluster: "BookKeeperCluster"
    ) -> tuple[int, int, list[str]]:
        done = failures = 0
        async with _tools(store, cluster) as (client, marks):
            repair = LedgerRepair(client, RecoverySettings(), ReplicationCounters())
            locks = MarkedLedgers(marks, NAME, random.Random())
            recovery = BookieRecovery(client, repair, locks, bookies)
            ids = [ledger] if ledger is not None else await client.ledgers.ids()
            with progress(len(ids), "recovering ledgers") as bar:
                for one in ids:
                    try:
                        if dry_run:
                            fragments = await recovery.plan(one)
                            done += bool(fragments)
                            for fragment in fragments:
                                _say_plan(fragment, as_json)
                        elif found := await recovery.recover(one, skip_open=skip_open):
                            done += 1
                            _say_done(one, found, as_json)
                    except BrokerError as error:
                        failures += 1
                        remark(f"ledger {one}: {error}")
                    bar.update(1)
        unknown = [] if done or failures else await _unknown(store, cluster, bookies)
        return done, failures, unknown

    done, failures, unknown = in_cluster(metadata_uri, recover)
    if unknown:
        raise OperatorError(f"no ledger names {', '.join(unknown)}, and there is no such bookie")
    remark(f"{done} ledgers {'would be' if dry_run else 'were'} repaired")
    if failures:
        click.get_current_context().exit(FOUND_DAMAGE)


async def _unknown(
    store: "ZooKeeperMetadata", cluster: "BookKeeperCluster", bookies: tuple[str, ...]
) -> list[str]:
    """The bookies that do not run, and have no cookie."""
    from magnetar.bookie.cluster.overview import ClusterOverview

    overview = ClusterOverview(store, cluster)
    known = {
        *await overview.known_bookies(),
        *await overview.bookies(),
        *await overview.read_only_bookies(),
    }
    return [bookie for bookie in bookies if bookie not in known]


def _say_plan(fragment: "PlannedFragment", as_json: bool) -> None:
    if as_json:
        report(json_line(fragment))
        return
    new = ", ".join(
        f"{old} -> {fragment.replacements.get(old, 'nobody')}"
        for old in fragment.ensemble
        if old in fragment.replacements
    )
    state = ", which is recovered first" if fragment.open else ""
    report(
        f"ledger {fragment.ledger_id} from entry {fragment.first} on{state}: "
        f"{new or 'no bookie can take the place'}"
    )


def _say_done(ledger_id: int, found: "RecoveredLedger", as_json: bool) -> None:
    if as_json:
        report(json_line({"ledger": ledger_id, "fragments": found.fragments}))
    else:
        closed = "closed, and " if found.closed else ""
        report(f"ledger {ledger_id}: {closed}{found.fragments} fragments copied")


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


def commands() -> list[click.Command]:
    def command(name: str, callback: Any, text: str, *params: click.Parameter) -> click.Command:
        shared = [uri_option(), json_option()]
        return click.Command(name, callback=callback, params=[*params, *shared], help=text)

    return [
        command(
            "decommission",
            _decommission,
            "Retire a stopped bookie: have its ledgers replicated elsewhere, wait until none needs "
            "it, and make the cluster forget its cookie. A recovery must be running.",
            click.Argument(["bookie_id"], metavar="BOOKIE"),
        ),
        command(
            "recover",
            _recover,
            "Copy what bookies have, or had, to others, in all ledgers, and without them. Open "
            "ledgers that they are taking entries of are closed, and their writers refused. The "
            "exit code is 1 if a ledger could not be repaired.",
            click.Argument(["bookies"], nargs=-1, required=True, metavar="BOOKIE..."),
            click.Option(["--ledger"], type=whole_number(0), metavar="N",
                         help="Only in one ledger."),
            click.Option(["--dry-run"], is_flag=True,
                         help="Print what would be copied where, and change nothing."),
            click.Option(["--skip-open-ledgers", "skip_open"], is_flag=True,
                         help="Leave open ledgers to their writers."),
        ),
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
