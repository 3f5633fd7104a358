"""What stands behind the header of a batch: walked through before it is stored."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from magnetar.core.entry.kafka import record_batch
from magnetar.core.entry.kafka.compression import CODECS, Oversized, compress_records
from magnetar.core.entry.kafka.record_batch import HEADER_BYTES, zigzag
from magnetar.core.policy.policies import Effective, NamespacePolicies, TopicPolicies, effective
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.configs import ProduceRules, rules
from magnetar.wire.kafka.errors import KafkaRefusal
from magnetar.wire.kafka.partition import batches, contents
from magnetar.wire.kafka.tests.batch import batch, headed, record

NOW_MS = 1_700_000_000_000


def packed(
    place: bytes = b"\0",
    *,
    time: bytes = b"\0",
    key: bytes = b"\x01",
    value: bytes = b"\x02v",
    headers: bytes = b"\0",
    size: int = 0,
) -> bytes:
    """One record, each part as its bytes; `size` is how much longer it says that it is."""
    inside = b"\0" + time + place + key + value + headers
    return zigzag(len(inside) + size) + inside


FINE = packed() + packed(b"\x02", key=b"\x02k", headers=b"\x02\x02h\x01")
BAD: list[tuple[str, bytes, int]] = [
    ("nothing at all", b"", 1),
    ("fewer records than it says", FINE, 3),
    ("more records than it says", FINE, 1),
    ("an empty record", b"\0", 1),
    ("a record of less than nothing", b"\x01" + FINE, 1),
    ("a record longer than its batch", packed(size=1), 1),
    ("a record shorter than what is in it", packed(size=-1), 1),
    ("a place that does not count on", packed() + packed(), 2),
    ("a place before the first", packed(b"\x01"), 1),
    ("a number without an end", packed(b"\xff" * 12), 1),
    ("a number too large for what it says", packed(b"\x80\x80\x80\x80\x10"), 1),
    ("a time too large", packed(time=b"\xff" * 9 + b"\x02"), 1),
    ("a key longer than its record", packed(key=b"\x40k"), 1),
    ("a value longer than its record", packed(value=b"\x40v"), 1),
    ("fewer headers than none", packed(headers=b"\x01"), 1),
    ("more headers than there can be", packed(headers=b"\x14\x02h\x01"), 1),
    ("more headers than there are", packed(headers=b"\x04\x02h\x01"), 1),
    ("fewer headers than there are", packed(headers=b"\x02\x02h\x01\x02h\x01"), 1),
    ("a header without a name", packed(headers=b"\x02\x01\x01"), 1),
    ("a header longer than its record", packed(headers=b"\x02\x02h\x40"), 1),
]


def codes(**configs: str) -> ProduceRules:
    named = {name.replace("_", "."): value for name, value in configs.items()}
    policies = TopicPolicies(configs=named)
    return rules(effective(Effective(), NamespacePolicies(), policies), {})


@pytest.mark.parametrize(("records", "count"), [case[1:] for case in BAD], ids=[c[0] for c in BAD])
@pytest.mark.parametrize("codec", [0, *CODECS])
def test_what_clients_cannot_get_past_is_refused(records: bytes, count: int, codec: int) -> None:
    made = headed(compress_records(records, codec), count, attributes=codec)
    with pytest.raises(KafkaRefusal) as caught:
        batches.checked(made, codes(), NOW_MS)
    assert caught.value.code == errors.INVALID_RECORD


@pytest.mark.parametrize("codec", [0, *CODECS])
def test_what_is_in_order_is_taken_as_it_is(codec: int) -> None:
    made = headed(compress_records(FINE, codec), 2, attributes=codec)
    assert batches.checked(made, codes(), NOW_MS)[0] is made


@pytest.mark.parametrize("codec", CODECS)
def test_garbage_for_compression_is_refused(codec: int) -> None:
    with pytest.raises(KafkaRefusal) as caught:
        batches.checked(headed(b"\x07garbage" * 5, 1, attributes=codec), codes(), NOW_MS)
    assert caught.value.code == errors.INVALID_RECORD


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_nobody_knows(codec: int) -> None:
    with pytest.raises(KafkaRefusal) as caught:
        batches.checked(headed(FINE, 2, attributes=codec), codes(), NOW_MS)
    assert caught.value.code == errors.UNSUPPORTED_COMPRESSION


@pytest.mark.parametrize(
    ("producer", "attributes"),
    [((-1, -1, -1), record_batch.TRANSACTIONAL), ((7, -1, 0), 0), ((7, 0, -1), 0)],
)
def test_who_it_is_must_be_whole(producer: tuple[int, int, int], attributes: int) -> None:
    with pytest.raises(KafkaRefusal) as caught:
        batches.checked(headed(FINE, 2, producer, attributes), codes(), NOW_MS)
    assert caught.value.code == errors.INVALID_RECORD


def test_every_bad_record_is_named() -> None:
    lies = packed(b"\x04", value=b"\x40v")
    made = headed(packed() + packed(b"\x08", key=b"\x02k") + lies, 3)
    with pytest.raises(batches.BadRecords) as caught:
        batches.checked(made, codes(), NOW_MS)
    assert [place for place, _ in caught.value.faults] == [1, 2]
    with pytest.raises(batches.BadRecords) as caught:
        batches.checked(made, codes(cleanup_policy="compact"), NOW_MS)
    assert caught.value.faults[0] == (0, batches.NO_KEY)
    assert [place for place, _ in caught.value.faults] == [0, 1, 2]


def test_every_record_has_a_time_of_its_own() -> None:
    records = packed(time=zigzag(3_600_001)) + packed(b"\x02") + packed(b"\x04", time=zigzag(-1001))
    with pytest.raises(batches.BadRecords) as caught:
        batches.checked(headed(records, 3), codes(message_timestamp_before_max_ms="1000"), NOW_MS)
    assert caught.value.code == errors.INVALID_TIMESTAMP
    assert [place for place, _ in caught.value.faults] == [0, 2]
    by_broker = codes(message_timestamp_type="LogAppendTime")
    assert batches.checked(headed(records, 3), by_broker, NOW_MS)[1].records == 3


def test_a_last_time_that_is_not_the_latest_is_set_right() -> None:
    made = headed(packed(time=zigzag(-5)) + packed(b"\x02", time=zigzag(-3)), 2)
    taken, header = batches.checked(made, codes(), NOW_MS)
    assert header == record_batch.header_of(taken)
    assert header.last_timestamp == NOW_MS - 3
    batches.check(taken, header)
    assert taken[HEADER_BYTES:] == made[HEADER_BYTES:]


def test_a_time_beyond_all_clocks() -> None:
    late = codes(message_timestamp_after_max_ms=str(2**63 - 1))
    made = headed(packed(time=zigzag(2**63 - 1)), 1)
    with pytest.raises(KafkaRefusal) as caught:
        batches.checked(made, late, NOW_MS)
    assert caught.value.code == errors.INVALID_TIMESTAMP


def test_what_is_much_uncompressed_takes_its_time_and_no_more_memory_than_it_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bomb = headed(gzip.compress(record(0, bytes(1 << 20))), 1, attributes=1)
    with pytest.raises(Oversized):
        batches.checked(bomb, codes(), NOW_MS)
    assert batches.prepared(bomb, codes(), NOW_MS)[0] is bomb
    monkeypatch.setattr(batches, "RECORDS_BYTES_MAX", 1 << 20)
    with pytest.raises(KafkaRefusal) as caught:
        batches.prepared(bomb, codes(), NOW_MS)
    assert caught.value.code == errors.MESSAGE_TOO_LARGE


def test_a_batch_may_become_too_large_by_being_unpacked() -> None:
    narrow = codes(compression_type="uncompressed", max_message_bytes="2000")
    made = headed(gzip.compress(record(0, bytes(4000))), 1, attributes=1)
    with pytest.raises(KafkaRefusal) as caught:
        batches.prepared(made, narrow, NOW_MS)
    assert caught.value.code == errors.MESSAGE_TOO_LARGE


def test_what_is_small_and_expands_is_not_for_the_loop() -> None:
    """So many fit into what is received at once that they would hold it up for seconds."""
    made = headed(gzip.compress(record(0, bytes(40_000))), 1, attributes=1)
    with pytest.raises(Oversized):
        batches.checked(made, codes(), NOW_MS)
    assert batches.prepared(made, codes(), NOW_MS)[0] is made


@pytest.mark.parametrize("codec", CODECS)
def test_what_expands_beyond_measure_is_too_large(codec: int) -> None:
    payload = compress_records(bytes(batches.EXPANDED_BYTES_MIN + 1), codec)
    made = headed(payload, 1, attributes=codec)
    with pytest.raises(KafkaRefusal) as caught:
        batches.prepared(made, codes(), NOW_MS)
    expected = len(payload) * batches.EXPANDED_RATIO < batches.EXPANDED_BYTES_MIN
    refused_as = errors.MESSAGE_TOO_LARGE if expected else errors.INVALID_RECORD
    assert caught.value.code == refused_as


def test_of_many_bad_records_the_first_are_named() -> None:
    count = 3 * batches.RECORD_ERRORS_MAX
    made = headed(packed(b"\x01") * count, count)
    with pytest.raises(batches.BadRecords) as caught:
        batches.checked(made, codes(), NOW_MS)
    assert len(caught.value.faults) == batches.RECORD_ERRORS_MAX


def test_a_bad_record_behind_many_is_found_by_compiled_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One by one, a hundred thousand take half a second of the loop."""
    described: list[int] = []

    def counted(record: bytes, place: int) -> contents.RecordFinding:
        described.append(place)
        return contents.described(record, place)

    monkeypatch.setattr(batches, "described", counted)
    fine = b"".join(packed(zigzag(place)) for place in range(999))
    with pytest.raises(batches.BadRecords) as caught:
        batches.checked(headed(fine + packed(b"\x01"), 1000), codes(), NOW_MS)
    assert [place for place, _ in caught.value.faults] == described == [999]


# -- the twins -------------------------------------------------------------------------------------


def mutations(data: bytes) -> Iterator[bytes]:
    for at in range(len(data)):
        yield data[:at] + data[at + 1 :]
        for byte in (0, 1, 2, 127, 128, 255):
            yield data[:at] + bytes((byte,)) + data[at + 1 :]


def same(data: bytes, count: int, *, keyed: bool) -> None:
    found = contents.spread(data, 0, count, keyed)
    assert contents.spread(memoryview(data), 0, count, keyed) == found
    for times in ((-(2**63), 2**63 - 1), (-2, 1)):
        for most in (1, 9):
            bad = contents.bad(data, 0, count, keyed, times, most)
            assert contents.bad(memoryview(data), 0, count, keyed, times, most) == bad
            if times[0] < -2:
                assert found is None or bad == ([], count)
    if found is not None:
        records = record_batch.records_of(headed(data, count))
        assert [one.place for one in records] == list(range(count))


@given(st.binary(max_size=60), st.integers(0, 4), st.booleans())
@example(b"\x0c\0\0\0\x01\x01\0", 1, False)
def test_twins_agree_on_arbitrary_bytes(data: bytes, count: int, keyed: bool) -> None:
    same(data, count, keyed=keyed)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("records", [FINE, *[case[1] for case in BAD]])
def test_twins_agree_on_what_is_nearly_right(records: bytes, keyed: bool) -> None:
    for data in (records, *mutations(records)):
        for count in (1, 2, 3):
            same(data, count, keyed=keyed)


def test_what_stock_code_packs_is_in_order() -> None:
    made = batch(*[b"%d" % number * 50 for number in range(300)])
    assert contents.spread(made, HEADER_BYTES, 300, False) == (0, 0)
    assert contents.spread(made, HEADER_BYTES, 300, True) is None
