"""Ledger metadata as older clients write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import ledger_metadata, old_ledger_metadata
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.errors import Corrupted, Unsupported

HEAD = b"BookieMetadataFormatVersion\t"
TEXT = b"""2
quorumSize: 2
ensembleSize: 3
length: 0
lastEntryId: -1
state: OPEN
segment {
  ensembleMember: "127.0.0.1:3181"
  ensembleMember: "127.0.0.1:3182"
  ensembleMember: "127.0.0.1:3183"
  firstEntryId: 0
}
digestType: CRC32C
password: "\\001secret"
ackQuorumSize: 2
"""
"""By the rules of `TextFormat.print` of Java's protobuf."""


def test_text() -> None:
    found, version = ledger_metadata.decode(HEAD + TEXT)
    assert version == 2
    assert (found.quorumSize, found.ackQuorumSize, found.ensembleSize) == (2, 2, 3)
    assert found.segment[0].ensembleMember[2] == "127.0.0.1:3183"
    assert (found.digestType, found.password) == (LedgerMetadata.CRC32C, b"\1secret")
    assert ledger_metadata.encode(found, 2) == HEAD + TEXT


def test_text_with_a_field_that_has_no_name_here() -> None:
    """Writing it back would lose the field."""
    with pytest.raises(Unsupported, match="newerField"):
        ledger_metadata.decode(HEAD + TEXT + b"newerField: 1\n")


@pytest.mark.parametrize("body", [b"2\nquorumSize 2", b"2\n\xff\xff", b"2\nquorumSize: two\n"])
def test_nonsense_instead_of_text(body: bytes) -> None:
    with pytest.raises(Corrupted):
        ledger_metadata.decode(HEAD + body)


LINES = [
    (b"1\n2\n3\n0\n0\ta:1\tb:1\tc:1\n", LedgerMetadata.OPEN, -1),
    (b"1\n2\n3\n0\n0\ta:1\tb:1\tc:1\n-102\tCLOSED", LedgerMetadata.IN_RECOVERY, -1),
    (b"1\n2\n3\n99\n0\ta:1\tb:1\tc:1\n5\ta:1\tb:1\td:1\n9\tCLOSED", LedgerMetadata.CLOSED, 9),
]


@pytest.mark.parametrize(("body", "state", "last"), LINES)
def test_lines(body: bytes, state: LedgerMetadata.State, last: int) -> None:
    found, version = ledger_metadata.decode(HEAD + body)
    assert (version, found.state, found.lastEntryId) == (1, state, last)
    assert (found.quorumSize, found.ackQuorumSize, found.ensembleSize) == (2, 2, 3)
    assert list(found.segment[0].ensembleMember) == ["a:1", "b:1", "c:1"]
    assert ledger_metadata.encode(found, 1) == HEAD + body


@pytest.mark.parametrize(
    "body",
    [b"2\n3\n", b"2\n3\n0\nzero\ta:1\n", b"2\n3\n0\n0\n", b"2\n3\n0\n9\tCLOSED\n0\ta:1\n", b"\xff"],
)
def test_nonsense_instead_of_lines(body: bytes) -> None:
    with pytest.raises(Corrupted):
        old_ledger_metadata.parse_lines(body)


@given(
    st.lists(st.text(st.characters(codec="utf-8"), max_size=9), min_size=1, max_size=3),
    st.dictionaries(st.text(max_size=9), st.binary(max_size=30), max_size=3),
    st.integers(-1, 2**63 - 1),
)
def test_text_comes_back(ensemble: list[str], properties: dict[str, bytes], last: int) -> None:
    made = ledger_metadata.fresh(tuple(ensemble), (1, 1), properties, 0, 0)
    made.state, made.lastEntryId = LedgerMetadata.CLOSED, last
    assert ledger_metadata.decode(ledger_metadata.encode(made, 2)) == (made, 2)
