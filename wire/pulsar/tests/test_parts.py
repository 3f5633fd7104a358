"""Parts of commands, for themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import WireError
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import parts, values

UNSIGNED = st.integers(0, (1 << 64) - 1)


@given(UNSIGNED)
def test_the_highest_number_is_minus_one(number: int) -> None:
    assert parts.signed(number) & ((1 << 64) - 1) == number
    assert (parts.signed(number) < 0) == (number >= 1 << 63)


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=4))
def test_words_of_a_mask_come_lowest_first(words: list[int]) -> None:
    mask = parts.mask_of(words)
    assert [mask >> 64 * at & ((1 << 64) - 1) for at in range(len(words))] == [
        word & ((1 << 64) - 1) for word in words
    ]


def test_a_mask_has_an_end() -> None:
    """Words were joined one by one: 300,000 of them, one frame, stopped the server for minutes."""
    words = [-1] * parts.ACK_SET_WORDS_MAX
    assert parts.mask_of(words).bit_count() == 64 * len(words)
    with pytest.raises(WireError):
        parts.mask_of([*words, 1])
    with pytest.raises(WireError):
        parts.message_id(pb.MessageIdData(ledger_id=1, entry_id=1, ack_set=[*words, 1]))


def test_ids_within_ids_are_read_one_level_deep() -> None:
    deep = pb.MessageIdData(ledger_id=3, entry_id=3)
    first = pb.MessageIdData(ledger_id=1, entry_id=2, first_chunk_message_id=deep)
    data = pb.MessageIdData(ledger_id=(1 << 64) - 1, entry_id=5, first_chunk_message_id=first)
    read = parts.message_id(data)
    assert (read.ledger_id, read.first_chunk) == (-1, values.MessageId(1, 2))


def test_both_halves_make_a_transaction() -> None:
    assert parts.txn_if_any(pb.CommandSend(txnid_most_bits=0)) is None
    assert parts.txn_if_any(pb.CommandSend(txnid_most_bits=0, txnid_least_bits=7)) == (0, 7)


def test_who_is_meant_by_a_proxy() -> None:
    requested = pb.CommandLookupTopic(original_principal="me", original_auth_data="x")
    assert parts.original_user(requested) == values.OriginalUser("me", "x", "")
    assert parts.original_user(pb.CommandLookupTopic()) is None


def test_a_schema_if_there_is_one() -> None:
    assert parts.schema(pb.CommandProducer()) is None
    sent = pb.Schema(name="s", schema_data=b"d", type=pb.Schema.JSON)
    assert parts.schema(pb.CommandProducer(schema=sent)) == values.SchemaInfo("s", 2, b"d", {})
