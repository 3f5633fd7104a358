"""Memory for responses: plenty, shares of batches, and what is kept back for whom."""

from types import SimpleNamespace

import pytest

from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.reads.read_memory import ReadMemory
from magnetar.bookie.requests.tests.peers import KEY
from magnetar.bookie.rpc.messages import BatchRead, Read
from magnetar.bookie.rpc.wire import Call
from magnetar.core.link.memory.outbound import OutboundMemory

MIB = 1024 * 1024
READ, FENCING = Call(2, Read(1, 0)), Call(2, Read(1, 0, KEY, fence=True))
PREFERRED = Call(2, Read(1, 0, high_priority=True))
BATCH = Call(2, BatchRead(1, 0, 0, 0, 2**62))


class Readers:
    """Connections of one link, and how often their reads were granted memory."""

    def __init__(self):
        self.outgoing = OutboundMemory(64 * MIB, MIB)
        self.granted = []

    def reader(self, *, reads=False):
        connection = SimpleNamespace(link=self, reads=reads, outbox_bytes=0, packed_bytes=0)
        return ReadMemory(connection, RequestLimits(), lambda: self.granted.append(connection))


@pytest.fixture
def readers():
    return Readers()


def test_with_plenty_a_whole_frame_is_reserved_until_the_response(readers):
    memory = readers.reader()
    assert memory.is_plentiful
    assert memory.take_plenty(READ)
    assert memory.has(READ, 5 * MIB)
    assert memory.bytes_max(BATCH) == 5 * MIB
    assert readers.outgoing.used > 5 * MIB
    memory.release()
    memory.release()
    assert readers.outgoing.used == 0


def test_batches_are_smaller_as_less_is_left_and_never_nothing(readers):
    sizes = []
    for _ in range(40):
        memory = readers.reader()
        assert memory.ask(BATCH, 1000)
        sizes.append(memory.bytes_max(BATCH))
    assert sizes[0] == 5 * MIB
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == readers.outgoing.claims.small_bytes
    assert readers.outgoing.used < 44 * MIB


def test_a_batch_has_room_for_its_first_entry(readers):
    readers.outgoing.add(28 * MIB)
    memory = readers.reader()
    assert memory.ask(BATCH, 5 * MIB)
    assert memory.has(BATCH, 5 * MIB)


def test_small_and_urgent_reads_have_memory_that_others_cannot_take(readers):
    stuck = []
    while (memory := readers.reader()).ask(READ, 5 * MIB):
        stuck.append(memory)
    assert not readers.reader().ask(READ, 5 * MIB)
    assert readers.reader().ask(READ, 1000)
    assert readers.reader(reads=True).ask(READ, 5 * MIB)
    assert readers.reader().ask(PREFERRED, 5 * MIB)
    assert readers.reader().ask(FENCING, 5 * MIB)
    assert readers.reader().ask(FENCING, 1000)
    assert readers.outgoing.used <= 64 * MIB


def test_urgent_reads_of_those_who_receive_have_more(readers):
    held = []
    while (memory := readers.reader()).ask(FENCING, 5 * MIB):
        held.append(memory)
    assert readers.outgoing.used <= 20 * MIB
    assert not readers.reader().ask(PREFERRED, 5 * MIB)
    assert readers.reader().ask(READ, 5 * MIB)
    while readers.reader(reads=True).ask(FENCING, 5 * MIB):
        pass
    assert readers.outgoing.used > 54 * MIB


def test_who_waits_is_granted_and_who_leaves_is_forgotten(readers):
    readers.outgoing.add(38 * MIB)
    first, second, third = (readers.reader() for _ in range(3))
    for memory in (first, second, third):
        assert not memory.ask(READ, 5 * MIB)
        assert memory.waits(READ)
    second.release()
    readers.outgoing.remove(16 * MIB)
    readers.outgoing.relieve()
    assert len(readers.granted) == 2
    assert first.has(READ, 5 * MIB)
    assert third.has(READ, 5 * MIB)
    assert not first.waits(READ)
    for memory in (first, second, third):
        memory.release()
    assert readers.outgoing.used == 22 * MIB


def test_another_read_that_goes_first_gives_up_the_place(readers):
    readers.outgoing.add(38 * MIB)
    memory = readers.reader()
    assert not memory.ask(READ, 5 * MIB)
    assert memory.ask(FENCING, 1000)
    assert not memory.waits(READ)
    assert not readers.outgoing.short
