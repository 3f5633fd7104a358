"""How far a recovery reads ahead, with answers that the test gives."""

from magnetar.bookie.client.quorum.answers import Answers
from magnetar.bookie.client.quorum.reads_ahead import ReadsAhead
from magnetar.bookie.client.quorum.recovery_quorums import RecoveryRead
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.rpc.messages import Read, ReadEntry, Status

STRIPING = Striping(3, 3, 2)


class Asked:
    """Connections that answer when the test says so."""

    def __init__(self):
        self.entries = []
        self._replied = {}

    def to(self, bookie):
        return self

    def ask(self, request, replied):
        if request.entry_id not in self.entries:
            self.entries.append(request.entry_id)
        self._replied.setdefault(request.entry_id, []).append(replied)

    def answer(self, entry_id, size):
        for replied in self._replied.pop(entry_id):
            replied(ReadEntry(Status.OK, 1, entry_id, bytes(size)))

    def begin(self, entry_id, held):
        answers = Answers(self, held)
        for position in range(3):
            answers.ask(position, f"b{position}", Read(1, entry_id))
        return RecoveryRead(STRIPING, entry_id), answers


def reading(asked, bytes_max=3000, count_max=16):
    return ReadsAhead(asked.begin, 0, copies=3, count_max=count_max, bytes_max=bytes_max)


def test_with_each_entry_twice_as_many_are_begun_up_to_the_limit():
    asked = Asked()
    reads = reading(asked, 1 << 20)
    begun = []
    for _ in range(8):
        reads.first()
        begun.append(len(asked.entries))
        reads.decided(10)
    assert begun == [2, 5, 10, 19, 19, 19, 19, 19]


def test_as_many_as_have_room_if_they_are_as_large():
    asked = Asked()
    reads = reading(asked)
    reads.first()
    reads.decided(300)
    reads.first()
    assert asked.entries == [0, 1, 2, 3], "three, with three copies of each"
    for _ in range(4):
        reads.decided(2000)
        reads.first()
    assert asked.entries == [0, 1, 2, 3, 4, 5], "one at a time"


def test_reads_for_which_there_is_no_room_are_given_up_and_begun_again():
    asked = Asked()
    reads = reading(asked)
    for _ in range(3):
        reads.first()
        reads.decided(10)
    reads.first()
    last = asked.entries[-1]
    assert last > 9
    asked.answer(last - 1, 500)
    asked.answer(last - 2, 500)
    assert reads._bytes == 3000
    asked.answer(last - 3, 500)
    assert reads._bytes == 3000, "the last two were given up"
    asked.answer(3, 2000)
    assert (len(reads._reads), reads._bytes) == (1, 6000), "and then all but the first"
    asked.entries.clear()
    reads.decided(2000)
    assert reads._bytes == 0
    reads.first()
    assert asked.entries == [4]
    asked.answer(4, 10)
    assert reads._bytes == 30, "the first answers to 4 belong to nobody"
