"""What garbage collection owes when nothing goes wrong any more: deleted ledgers leave the disks.

Within `COLLECTED_SECONDS` no bookie that runs has a row or a location of one, nor a finished entry
log with nothing else in it. That nothing else leaves is required at every moment: of the collector
(`Histories.collected`), of answers (`promises.py`), and of what is read in the end.

Left out: bookies whose disks have rotted, since logs that cannot be read through are left alone.
"""

from magnetar.core.kernel.errors import Corrupted

COLLECTED_SECONDS = 15.0


class Garbage:
    """See the module's docstring."""

    def __init__(self, world):
        self._world = world

    async def wait(self):
        """Wait until nothing is left of deleted ledgers; it is a violation if that takes long."""
        await self._world.verdict.require_soon(self._left, COLLECTED_SECONDS)

    async def _left(self):
        """Something of a deleted ledger; None if there is nothing."""
        deleted = {i for i, each in self._world.histories.ledgers.items() if each.deleted}
        for bookie in self._world.bookies:
            if bookie.serving and bookie.bookie_id not in self._world.promises.damaged:
                left = await self._left_at(bookie.incarnation.running, deleted)
                if left is not None:
                    return f"{bookie.name} has {left}"
        return None

    async def _left_at(self, running, deleted):
        storage = running.storage
        rows = deleted.intersection(storage.ledgers.ledger_ids())
        if rows:
            return f"rows of the ledgers {sorted(rows)}, which are deleted"
        for ledger_id in sorted(deleted):
            if storage.locations.last(ledger_id) is not None:
                return f"locations of ledger {ledger_id}, which is deleted"
        for log_id in await running.collector.finished_logs():
            try:
                contents, _ = storage.reader.ledgers(log_id, storage.pause)
            except Corrupted as error:
                return f"what cannot be read: {error}"
            if set(contents) <= deleted:
                return f"the entry log {log_id:x} with nothing but deleted ledgers"
        return None
