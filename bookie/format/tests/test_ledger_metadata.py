"""Ledger metadata: Apache's paths and bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import ledger_metadata
from magnetar.core.kernel.errors import Corrupted, Unsupported


def test_paths():
    assert ledger_metadata.path_of(0) == "/ledgers/00/0000/L0000"
    assert ledger_metadata.path_of(1) == "/ledgers/00/0000/L0001"
    assert ledger_metadata.path_of(2**31 - 2) == "/ledgers/21/4748/L3646"
    assert ledger_metadata.path_of(2**31 - 1) == "/ledgers/000/0000/0021/4748/L3647"


def test_bytes_of_a_fresh_ledger():
    fresh = ledger_metadata.fresh(("embedded",), (1, 1), {"application": b"pulsar"}, 1000, 7)
    data = ledger_metadata.encode(fresh)
    head = b"BookieMetadataFormatVersion\t3\n"
    assert data.startswith(head)
    assert data[len(head)] == len(data) - len(head) - 1
    # quorum 1, ensemble 1, length 0, last entry -1, OPEN
    assert data[len(head) + 1 :].startswith(
        b"\x08\x01\x10\x01\x18\x00\x20" + b"\xff" * 9 + b"\x01\x28\x01"
    )
    info = ledger_metadata.info(4, ledger_metadata.decode(data)[0])
    assert (info.ledger_id, info.closed, info.last_entry_id, info.length) == (4, False, -1, 0)
    assert info.properties == {"application": b"pulsar"}


def test_unknown_fields_survive_a_rewrite():
    data = ledger_metadata.encode(ledger_metadata.fresh(("a",), (1, 1), {}, 0, 0))
    head = len(ledger_metadata.MAGIC) + 2
    body = data[head + 1 :] + b"\xf2\x07\x03new"  # field 126
    changed, _ = ledger_metadata.decode(data[:head] + bytes([len(body)]) + body)
    changed.state = ledger_metadata.CLOSED
    assert b"\xf2\x07\x03new" in ledger_metadata.encode(changed)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", Corrupted),
        (b"nonsense", Corrupted),
        (b"BookieMetadataFormatVersion\t4\nquorumSize: 1\n", Unsupported),
        (b"BookieMetadataFormatVersion\t\xff\n", Unsupported),
        (b"BookieMetadataFormatVersion\t3\n", Corrupted),
        (b"BookieMetadataFormatVersion\t3\n\x05abc", Corrupted),
        (b"BookieMetadataFormatVersion\t3\n\x03\xff\xff\xff", Corrupted),
    ],
)
def test_nonsense(data, error):
    with pytest.raises(error):
        ledger_metadata.decode(data)


@given(st.dictionaries(st.text(max_size=30), st.binary(max_size=300), max_size=6))
def test_any_properties(properties):
    data = ledger_metadata.encode(ledger_metadata.fresh(("a",), (1, 1), properties, 0, 0))
    assert ledger_metadata.info(1, ledger_metadata.decode(data)[0]).properties == properties


def test_a_ledger_without_an_ack_quorum_waits_for_its_write_quorum():
    fresh = ledger_metadata.fresh(("a", "b", "c"), (3, 2), {}, 1, 1)
    assert ledger_metadata.ack_quorum(fresh) == 2
    fresh.ClearField("ackQuorumSize")
    assert ledger_metadata.ack_quorum(fresh) == 3
