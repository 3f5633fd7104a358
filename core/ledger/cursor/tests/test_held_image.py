"""Held acknowledgements as they are stored; also by what is compiled."""

from __future__ import annotations

import subprocess
import sys

import pytest

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger.cursor.held_image import HeldImage, decode, encode

IMAGES = [
    HeldImage((3, 7), [(5, 0, 9)], [(5, 10, b"\x05", 3)], None),
    HeldImage(17, [], [], (6, 1, b"", 0)),
]
STORED_AND_READ = """
from magnetar.core.ledger.cursor.acks import AckState
from magnetar.core.ledger.cursor.pending_acks import PendingAcks
from magnetar.core.ledger.log.chain import Chain, Segment
chain = Chain()
chain.segments = [Segment(5, 0, 20)]
chain.confirmed = (5, 19)
held = PendingAcks(AckState(chain, (5, -1)))
held.hold((3, 7), [(5, 0, 9)], [(5, 10, 5, 3)])
other = PendingAcks(AckState(chain, (5, -1)))
other.restore(held.image())
assert other.image() == held.image(), other.image()
assert other.keys == [(3, 7)], other.keys
"""


def test_images() -> None:
    assert decode(encode(IMAGES)) == IMAGES


@pytest.mark.parametrize("data", [b"\x91", b"\x91\x92\x01\x02", b"no"])
def test_what_cannot_be_read(data: bytes) -> None:
    with pytest.raises(Corrupted):
        decode(data)


def test_a_server_reads_what_it_has_stored() -> None:
    """In a process that prefers what is compiled, as servers do and unit tests do not."""
    subprocess.run([sys.executable, "-c", STORED_AND_READ], check=True)
