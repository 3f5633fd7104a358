"""Torn at every byte, flipped at every byte: no commit is ever invented, and none skipped."""

import pytest

from magnetar.core.metadata import commit_log
from magnetar.core.metadata.commit_log import HEAD_BYTES, Head

HEAD = Head(3, 10, 77, 4096, 5)
BODIES = [b"", b"one", b"two" * 9, bytes(17), b"\xff" * 8]


def written() -> tuple[bytes, list[int]]:
    """A log, and where each commit begins."""
    data, chain, starts = commit_log.encode_head(HEAD), HEAD.chain, []
    for number, body in enumerate(BODIES, HEAD.number + 1):
        starts.append(len(data))
        commit = commit_log.encode_commit(number, chain, body)
        chain = commit_log.chain_of(commit)
        data += commit
    return data, starts


def bodies(data: bytes, head: Head = HEAD) -> list[bytes]:
    return [commit.body for commit in commit_log.commits(data, head)]


def test_what_is_written_is_read() -> None:
    data, _ = written()
    assert commit_log.decode_head(data) == HEAD
    assert bodies(data) == BODIES
    assert bodies(data + bytes(100)) == BODIES
    found = list(commit_log.commits(data, HEAD))
    assert [commit.number for commit in found] == [11, 12, 13, 14, 15]
    assert found[-1].end == len(data)


def test_torn_at_every_byte_it_ends_before_the_torn_commit() -> None:
    data, starts = written()
    for cut in range(HEAD_BYTES, len(data)):
        whole = sum(start <= cut for start in starts) - 1
        for tail in (b"", bytes(len(data) - cut), b"\xaa" * (len(data) - cut)):
            found = bodies(data[:cut] + tail)
            # padding is no part of what is checked
            assert found[:whole] == BODIES[:whole]
            assert found == BODIES[: len(found)]
            assert len(found) <= whole + 1


def test_flipped_at_every_bit_it_ends_at_the_flip() -> None:
    data, starts = written()
    for at in range(HEAD_BYTES, len(data)):
        commit = sum(start <= at for start in starts) - 1
        padding = at >= starts[commit] + 24 + len(BODIES[commit])
        for bit in range(8):
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            assert bodies(bytes(flipped)) == (BODIES if padding else BODIES[:commit])


def test_a_flip_in_the_head_is_told() -> None:
    data, _ = written()
    for at in range(52):
        flipped = bytearray(data)
        flipped[at] ^= 1
        with pytest.raises(ValueError, match="head"):
            commit_log.decode_head(bytes(flipped))


def test_commits_of_another_log_do_not_follow() -> None:
    data, _ = written()
    assert bodies(data, Head(3, 10, 78, 4096, 5)) == []
    assert bodies(data, Head(3, 9, 77, 4096, 5)) == []


def test_whole_commits_behind_damage_can_be_salvaged() -> None:
    data, starts = written()
    for at in range(starts[1], starts[2]):
        flipped = bytearray(data)
        flipped[at] ^= 0xFF
        found = list(commit_log.salvage(bytes(flipped), starts[1], 11))
        assert [commit.number for commit in found][-3:] == [13, 14, 15]
        assert [commit.body for commit in found][-3:] == BODIES[2:]
