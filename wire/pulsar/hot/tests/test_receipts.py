"""SEND_RECEIPT by hand, read by protobuf."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.pulsar.hot import echo_of, receipts, receipts_without_id
from magnetar.wire.pulsar.tests import peer

NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, (1 << 62)))
UNSIGNED = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1))
SEQUENCES = st.lists(st.tuples(UNSIGNED, st.one_of(st.none(), UNSIGNED)), min_size=1, max_size=300)


@given(UNSIGNED, SEQUENCES, NUMBERS, NUMBERS)
def test_receipts(producer_id, sequences, ledger_id, first_entry_id):
    echoes = [echo_of(*each) for each in sequences]
    frames = peer.parse_frames(receipts(producer_id, echoes, ledger_id, first_entry_id))
    assert len(frames) == len(sequences)
    for index, ((kind, receipt, tail), (sequence_id, highest)) in enumerate(
        zip(frames, sequences, strict=True)
    ):
        assert (kind, tail) == ("SEND_RECEIPT", b"")
        assert receipt.producer_id == producer_id
        assert receipt.sequence_id == sequence_id
        assert receipt.HasField("highest_sequence_id") == (highest is not None)
        assert receipt.highest_sequence_id == (highest or 0)
        assert receipt.message_id == peer.message_id(ledger_id, first_entry_id + index)


@given(UNSIGNED, st.integers(0, 1 << 40), st.integers(1, 400), NUMBERS, NUMBERS)
def test_receipts_of_consecutive_messages(producer_id, first, count, ledger_id, first_entry_id):
    echoes = [echo_of(first + index, None) for index in range(count)]
    frames = peer.parse_frames(receipts(producer_id, echoes, ledger_id, first_entry_id))
    assert [each.body.sequence_id for each in frames] == list(range(first, first + count))
    assert [each.body.message_id for each in frames] == [
        peer.message_id(ledger_id, first_entry_id + index) for index in range(count)
    ]


@given(UNSIGNED, SEQUENCES)
def test_receipts_without_id(producer_id, sequences):
    echoes = [echo_of(*each) for each in sequences]
    frames = peer.parse_frames(receipts_without_id(producer_id, echoes))
    assert [each.body.sequence_id for each in frames] == [each[0] for each in sequences]
    assert all(each.body.message_id == peer.message_id(-1, -1) for each in frames)


def test_no_receipts():
    assert receipts(3, [], 1, 0) == b""
    assert receipts_without_id(3, []) == b""
