"""What must be true of repairs at every moment, as the metadata tell it.

marks     one is removed only if no bookie that it names is in the ledger, and was away when it
          was written last, and is since: whoever removes it has looked after that
locks     who gives a closed segment another bookie has the ledger's lock; but for one whose
          session has ended, and who does not know it yet
auditor   of those that think they are elected there is one at a time; but for those that are
          frozen, and have not heard of their end
"""

import math

from magnetar.bookie.cluster.under_replication import ROOT, UnderReplication, id_of
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
        self._available = world.cluster.path("available") + "/"
        self._written_at = {}
        """When each mark was written last."""
        self._gone_at = {}
        """Since when bookies are not registered."""

    def changed(self, path, before, after):
        """Something was written to the store."""
        self._check_auditors()
        name = path.rpartition("/")[2]
        if path.startswith(self._available):
            self._bookie_changed(name)
        if not path.startswith(self._marks) or id_of(name) is None:
            return
        self._world.run.trace.note(f"{name} is {'marked' if after is not None else 'unmarked'}")
        if after is not None:
            self._written_at[path] = self._world.run.clock.monotonic()
        elif before is not None:
            self._removed(id_of(name), before.value.decode(), self._written_at[path])

    def _bookie_changed(self, bookie_id):
        truth, available = self._world.metadata.truth, self._available
        nodes = [at_once(truth.get(f"{available}{each}{bookie_id}")) for each in ("", "readonly/")]
        if any(node is not None for node in nodes):
            self._gone_at.pop(bookie_id, None)
        else:
            self._gone_at[bookie_id] = self._world.run.clock.monotonic()

    def _removed(self, ledger_id, value, written_at):
        history = self._world.histories.of(ledger_id)
        if history.deleted:
            return
        for bookie_id in history.view().bookies:
            named = f'"{bookie_id}"' in value
            self._world.verdict.require(
                not named or self._gone_at.get(bookie_id, math.inf) >= written_at,
                f"ledger {ledger_id} is unmarked, and has {bookie_id}, which is away",
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
        elected = self._world.elected
        if len(elected) > 1:
            world = self._world
            aware = [name for name in elected if not world.clients[name].host.is_frozen]
            world.verdict.require(len(aware) < 2, f"{aware} are auditors at the same time")
