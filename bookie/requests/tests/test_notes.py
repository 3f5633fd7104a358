"""Notes on their way to the journal hold up who sends too many, and nobody else."""

import trio

from magnetar.bookie.format import digests
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.requests.notes import NOTE_BYTES, NOTES_MAX, Notes
from magnetar.bookie.requests.tests.peers import KEY, add, serving
from magnetar.bookie.rpc.messages import ForceLedger, Read, Status, WriteLac
from magnetar.core.kernel.errors import Overloaded

COUNT = 500


async def test_a_connection_with_too_many_is_not_read(disk) -> None:
    async with serving(disk) as served, served.dial(3) as peer:
        await peer.ask(Read(1, 0))
        (connection,) = served.link._connections.values()
        notes, waiting, outcomes = Notes(connection), [], []
        for _ in range(NOTES_MAX - 1):
            notes.write(waiting.append, outcomes.append)
        assert connection.writes
        assert not connection.paused
        notes.write(waiting.append, outcomes.append)
        assert connection.paused
        assert served.link.incoming.storing == NOTES_MAX * NOTE_BYTES
        for done in waiting:
            done(None)
        assert outcomes == [None] * NOTES_MAX
        assert not connection.paused

        def refuse(done) -> None:
            raise Overloaded("no room")

        notes.write(refuse, outcomes.append)
        assert isinstance(outcomes[-1], Overloaded)
        assert connection.storing_bytes == 0


async def test_all_that_are_sent_at_once_are_answered(disk) -> None:
    packet = digests.seal_lac(digests.digest_type(LedgerMetadata.CRC32C, b""), 1, 0)
    kinds = [
        lambda i: ForceLedger(1),
        lambda i: WriteLac(1, 0, KEY, packet),
        lambda i: Read(i + 1, -1, KEY, fence=True),
    ]
    async with serving(disk) as served, served.dial(3) as peer:
        await peer.ask(*(add(i + 1, 0) for i in range(COUNT)))
        for kind in kinds:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(peer.say, *map(kind, range(COUNT)))
                for _ in range(COUNT):
                    assert (await peer.hear()).status is Status.OK
        (connection,) = served.link._connections.values()
        assert connection.storing_bytes == served.link.incoming.storing == 0
        assert not connection.paused
