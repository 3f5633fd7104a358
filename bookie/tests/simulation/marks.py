"""What must be true of repairs at every moment, as the metadata tell it.

marks     one is removed only if no bookie that it names is lost for ever, and named by the
          ledger: whoever removes it has looked after it was written last
locks     who gives a closed segment another bookie has the ledger's lock; but for one whose
          session has ended, and who does not know it yet
auditor   of those that think they are elected there is one at a time; but for those that are
          frozen, and have not heard of their end
"""

from magnetar.bookie.cluster.under_replication import ROOT, UnderReplication, id_of
from magnetar.bookie.tests.simulation.histories import segments
from magnetar.core.testing.simulation.virtual_metadata import at_once

UNHEARD_SECONDS = 5.0
"""How long after the end of its session a client may not know of it: what it has sent is on its
way, or it is frozen.
"""


class Marks:
    """See the module's docstring."""

    def __init__(self, world):
        self._world = world
        self._truth = UnderReplication(world.metadata.truth, world.cluster)
        self._marks = world.cluster.path(ROOT, "ledgers") + "/"
        self._written_at = {}

    def changed(self, path, before, after):
        """Something was written to the store."""
        self._check_auditors()
        name = path.rpartition("/")[2]
        if not path.startswith(self._marks) or id_of(name) is None:
            return
        self._world.run.trace.note(f"{name} is {'marked' if after is not None else 'unmarked'}")
        if after is not None:
            self._written_at[path] = self._world.run.clock.monotonic()
        elif before is not None:
            self._removed(id_of(name), before.value.decode(), self._written_at[path])

    def _removed(self, ledger_id, value, written_at):
        history = self._world.histories.of(ledger_id)
        if history.deleted:
            return
        members = {member for _, ensemble in segments(history.metadata) for member in ensemble}
        for bookie in self._world.bookies:
            self._world.verdict.require(
                bookie.lost_at > written_at
                or bookie.bookie_id not in members
                or f'"{bookie.bookie_id}"' not in value,
                f"ledger {ledger_id} is unmarked, and has {bookie.bookie_id}, which is lost",
            )

    def replaced(self, ledger_id):
        """A closed segment of a ledger has got another bookie."""
        world, writer = self._world, self._world.metadata.writer
        client = world.clients.get(writer)
        if (
            client is None
            or client.session.expired_at + UNHEARD_SECONDS > world.run.clock.monotonic()
        ):
            return
        held = at_once(world.metadata.truth.get(self._truth.lock_of(ledger_id)))
        world.verdict.require(
            held is not None and f'"{writer}"' in held.value.decode(),
            f"{writer} replaces bookies of ledger {ledger_id} without its lock",
        )

    def _check_auditors(self):
        elected = [name for name, each in self._world.repairers.items() if each.is_elected]
        if len(elected) > 1:
            world = self._world
            aware = [name for name in elected if not world.clients[name].host.is_frozen]
            world.verdict.require(len(aware) < 2, f"{aware} are auditors at the same time")
