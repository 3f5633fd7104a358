"""`magnetar bookie decommission` and `recover`: bookies are replaced in ledgers, by a recovery that
runs or by the command itself, as by Apache's `decommissionbookie` and `recover`.

`recover` prints a line for each fragment, or ledger; what could not be repaired is named. In the
end it is said how many there were, or that nobody knows such bookies. A ledger that somebody else
repairs comes after all others, and if it must be waited for, it is said once who has it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from magnetar.cli.bookie_cluster import forget
from magnetar.cli.cluster_metadata import in_cluster, replication_tools, uri_option
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
    from magnetar.bookie.replication.bookie_recovery import (
        BookieRecovery,
        LockedElsewhere,
        PlannedFragment,
        RecoveredLedger,
    )
    from magnetar.core.metadata.zookeeper.store import ZooKeeperMetadata

NAME = "magnetar-cli:0"
"""In the locks of ledgers that the command repairs."""
LOOKS_A_LINE = 10
"""Of a command that waits and looks once a second."""


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
        async with replication_tools(store, cluster) as (client, marks):
            audits = Audits(client, marks, SystemClock(), ReplicationCounters(), RecoverySettings())
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


class Replacement:
    """Repairs ledgers one by one, and tells of each."""

    def __init__(self, recovery: "BookieRecovery", *, skip_open: bool, as_json: bool) -> None:
        self._recovery = recovery
        self._skip_open = skip_open
        self._as_json = as_json
        self.done = 0
        """Ledgers that were repaired, or would be."""
        self.failures = 0

    async def plan(self, ids: Sequence[int]) -> None:
        """Tell what would be done about each."""
        from magnetar.core.kernel.errors import BrokerError

        with progress(len(ids), "looking at ledgers") as bar:
            for ledger_id in ids:
                try:
                    fragments = await self._recovery.plan(ledger_id)
                    self.done += bool(fragments)
                    for fragment in fragments:
                        _say_plan(fragment, self._as_json)
                except BrokerError as error:
                    self._fail(ledger_id, error)
                bar.update(1)

    async def run(self, ids: Sequence[int]) -> None:
        """Repair all of them; those that somebody else repairs are the last."""
        with progress(len(ids), "recovering ledgers") as bar:
            last = []
            for ledger_id in ids:
                if await self._is_through(ledger_id, waits=False):
                    bar.update(1)
                else:
                    last.append(ledger_id)
            for ledger_id in last:
                await self._is_through(ledger_id, waits=True)
                bar.update(1)

    async def _is_through(self, ledger_id: int, *, waits: bool) -> bool:
        from magnetar.bookie.replication.bookie_recovery import LockedElsewhere, RecoveredLedger
        from magnetar.core.kernel.errors import BrokerError

        try:
            found = await self._recover(ledger_id, waits)
        except BrokerError as error:
            self._fail(ledger_id, error)
            return True
        if isinstance(found, RecoveredLedger):
            self.done += 1
            _say_done(ledger_id, found, self._as_json)
        return not isinstance(found, LockedElsewhere)

    async def _recover(
        self, ledger_id: int, waits: bool
    ) -> "RecoveredLedger | LockedElsewhere | None":
        def say(holder: str) -> None:
            remark(f"ledger {ledger_id} is being repaired by {holder}: this waits until it is not")

        return await self._recovery.recover(
            ledger_id, skip_open=self._skip_open, waits_for=say if waits else None
        )

    def _fail(self, ledger_id: int, error: Exception) -> None:
        self.failures += 1
        remark(f"ledger {ledger_id}: {error}")


def _recover(
    bookies: tuple[str, ...],
    metadata_uri: str,
    ledger: int | None,
    dry_run: bool,
    skip_open: bool,
    as_json: bool,
) -> None:
    async def recover(
        store: "ZooKeeperMetadata", cluster: "BookKeeperCluster"
    ) -> tuple[Replacement, list[str]]:
        async with replication_tools(store, cluster) as (client, marks):
            recovery = _recovery(client, marks, bookies)
            replacement = Replacement(recovery, skip_open=skip_open, as_json=as_json)
            ids = [ledger] if ledger is not None else await client.ledgers.ids()
            await (replacement.plan if dry_run else replacement.run)(ids)
        found = replacement.done or replacement.failures
        return replacement, [] if found else await _unknown(store, cluster, bookies)

    replacement, unknown = in_cluster(metadata_uri, recover)
    if unknown:
        raise OperatorError(f"no ledger names {', '.join(unknown)}, and there is no such bookie")
    remark(f"{replacement.done} ledgers {'would be' if dry_run else 'were'} repaired")
    if replacement.failures:
        click.get_current_context().exit(FOUND_DAMAGE)


def _recovery(
    client: "ClusterClient", marks: "UnderReplication", bookies: tuple[str, ...]
) -> "BookieRecovery":
    import random  # noqa: TID251  # this composes the ledger client

    from magnetar.bookie.replication.bookie_recovery import BookieRecovery
    from magnetar.bookie.replication.ledger_repair import LedgerRepair
    from magnetar.bookie.replication.marked_ledgers import MarkedLedgers
    from magnetar.bookie.replication.settings import RecoverySettings
    from magnetar.bookie.replication.statistics import ReplicationCounters

    repair = LedgerRepair(client, RecoverySettings(), ReplicationCounters())
    return BookieRecovery(client, repair, MarkedLedgers(marks, NAME, random.Random()), bookies)


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


def commands() -> list[click.Command]:
    return [
        click.Command(
            "decommission",
            callback=_decommission,
            params=[
                click.Argument(["bookie_id"], metavar="BOOKIE"), uri_option(), json_option(),
            ],
            help="Retire a stopped bookie: have its ledgers replicated elsewhere, wait until none "
            "needs it, and make the cluster forget its cookie. A recovery must be running.",
        ),
        click.Command(
            "recover",
            callback=_recover,
            params=[
                click.Argument(["bookies"], nargs=-1, required=True, metavar="BOOKIE..."),
                click.Option(["--ledger"], type=whole_number(0), metavar="N",
                             help="Only in one ledger."),
                click.Option(["--dry-run"], is_flag=True,
                             help="Print what would be copied where, and change nothing."),
                click.Option(["--skip-open-ledgers", "skip_open"], is_flag=True,
                             help="Leave open ledgers to their writers."),
                uri_option(),
                json_option(),
            ],
            help="Copy what bookies have, or had, to others, in all ledgers, and without them. "
            "Open ledgers that they are taking entries of are closed, and their writers refused. "
            "Ledgers that a recovery repairs come last, and are waited for. The exit code is 1 if "
            "a ledger could not be repaired.",
        ),
    ]  # fmt: skip
