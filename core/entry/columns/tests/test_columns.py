"""Columns: values are those of the messages, and the compiled twin has the same for any bytes."""

from collections.abc import Callable
from itertools import pairwise
from struct import unpack

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from magnetar.core.entry import header, stamps
from magnetar.core.entry.columns import columns
from magnetar.core.entry.columns.columns import (
    NAMES,
    Buffers,
    Columns,
    HeaderBuffers,
    ListedColumns,
)
from magnetar.core.entry.forms import form_of
from magnetar.core.entry.kafka import form as kafka
from magnetar.core.entry.kafka import record_batch
from magnetar.core.entry.mqtt import form as mqtt
from magnetar.core.entry.pulsar import form as pulsar
from magnetar.core.entry.pulsar.messages import BATCH_MESSAGES_MAX
from magnetar.core.entry.record import DetailedRecord, Record
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.varints import varint

EVERYTHING = tuple(sorted(NAMES))
ANY = (0, (1 << 63) - 1)
FULL = DetailedRecord(
    3, 1_500, 2_500, b"k", b"o", b"v", [(b"h", b"1"), (b"h", None)], b"p", 9, bytes(7) + b"\x05"
)
BARE = DetailedRecord(4, -1, -1, None, None, None, (), None, None, b"not a number")


Twin = Callable[[tuple[str, ...]], Columns]


def compiled_twin() -> Twin:
    compiled = pytest.importorskip(
        "magnetar.core.entry.columns.compiled", reason="built where there is a C compiler"
    )
    made: Twin = compiled.columns_of
    return made


@pytest.fixture(params=["pure", "compiled"])
def made(request) -> Twin:
    """Makes columns in one of the two ways."""
    return ListedColumns if request.param == "pure" else compiled_twin()


def rows_of(taken: columns.Taken) -> list[dict]:
    """What Arrow would read."""
    lists = {name: values_of(name, column) for name, column in taken.items()}
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def values_of(name: str, column: list | Buffers | HeaderBuffers) -> list:
    if isinstance(column, list):
        return column
    if isinstance(column, HeaderBuffers):
        names = values_of("producer_name", column.names)
        pairs = list(zip(names, values_of("value", column.values), strict=True))
        return [pairs[begin:end] for begin, end in spans(column.ends)]
    values: list
    if column.ends is not None:
        values = [column.values[begin:end] for begin, end in spans(column.ends)]
        if name in ("producer_name", "protocol"):
            values = [one.decode() for one in values]
    else:
        width = 4 if name == "batch_index" else 8
        kind = "i" if width == 4 else "q"
        values = list(unpack(f"<{len(column.values) // width}{kind}", column.values))
    if column.valid is None:
        assert column.nulls == 0
        return values
    known = [column.valid[place >> 3] >> (place & 7) & 1 for place in range(len(values))]
    assert column.nulls == known.count(0) > 0
    return [one if is_known else None for one, is_known in zip(values, known, strict=True)]


def spans(ends: bytes) -> list[tuple[int, int]]:
    numbers = unpack(f"<{len(ends) // 4}i", ends)
    assert numbers[0] == 0
    return list(pairwise(numbers))


def test_messages_with_everything_and_with_nothing(made) -> None:
    found = made(EVERYTHING)
    found.add(7, 100, "pulsar", [FULL])
    found.add(8, None, "mqtt", [BARE])
    assert found.rows == 2
    everything, nothing = rows_of(found.take())
    assert everything == {
        "offset": 103, "entry_id": 7, "batch_index": 3, "publish_time": 1_500_000,
        "event_time": 2_500_000, "key": b"k", "ordering_key": b"o", "value": b"v",
        "headers": [("h", b"1"), ("h", None)], "producer_name": "p", "sequence_id": 9,
        "schema_version": 5, "protocol": "pulsar",
    }  # fmt: skip
    assert {name: value for name, value in nothing.items() if value not in (None, [])} == {
        "entry_id": 8, "batch_index": 4, "protocol": "mqtt",
    }  # fmt: skip
    assert (found.rows, rows_of(found.take())) == (0, [])


def test_only_what_is_asked_for(made) -> None:
    found = made(("value", "offset", "topic"))
    found.add(7, 100, "pulsar", [FULL, BARE])
    assert rows_of(found.take()) == [{"value": b"v", "offset": 103}, {"value": None, "offset": 104}]


def test_times_that_were_never_milliseconds_are_null(made) -> None:
    found = made(("publish_time", "event_time"))
    for ms in (1 << 62, -(1 << 62), 1 << 200, columns.MS_MAX + 1):
        found.add(1, 1, "pulsar", [FULL._replace(publish_ms=ms, event_ms=ms)])
    found.add(1, 1, "pulsar", [FULL._replace(publish_ms=columns.MS_MAX, event_ms=-2)])
    *never, (last) = rows_of(found.take())
    assert never == [{"publish_time": None, "event_time": None}] * 4
    assert last == {"publish_time": columns.MS_MAX * 1000, "event_time": -2000}


def test_text_that_is_none_is_replaced(made) -> None:
    found = made(("producer_name", "headers"))
    found.add(1, 1, "pulsar", [FULL._replace(producer=b"\xff", headers=[(b"a\xfe", b"\xff")])])
    assert rows_of(found.take()) == [{"producer_name": "�", "headers": [("a�", b"\xff")]}]


def test_full_by_rows_and_by_bytes(made) -> None:
    found = made(("value",))
    while not found.full:
        found.add(1, 1, "pulsar", [FULL] * 1_000)
    assert found.rows == columns.ROWS_MAX
    found.take()
    found.add(1, 1, "pulsar", [FULL._replace(value=bytes(columns.BYTES_MAX))])
    assert found.full


@pytest.mark.parametrize(
    "large",
    [{"headers": [(bytes(columns.BYTES_MAX), None)]}, {"ordering_key": bytes(columns.BYTES_MAX)}],
)
def test_full_by_other_bytes_than_values(made, large: dict) -> None:
    found = made(EVERYTHING)
    found.add(1, 1, "pulsar", [FULL._replace(**large)])
    assert found.full


def test_full_by_names_of_producers(made) -> None:
    """Each row has one, of which the first thousand bytes count."""
    found = made(EVERYTHING)
    found.add(1, 1, "mqtt", [BARE._replace(producer=b"p" * 65_535)] * 8_192)
    assert found.full
    assert {row["producer_name"] for row in rows_of(found.take())} == {"p" * 1_024}


# -- entries by the compiled twin -----------------------------------------------------------------


def entry(sent: bytes, count: int = 1, index: int = 1_000) -> bytes:
    (made,) = stamps.headers(1, [count], 1 << 40, index)
    return made + sent


def add_by_form(
    found: Columns, one: bytes, entry_id: int, start: int, end: int
) -> Corrupted | None:
    """What the reader does with an entry that is not taken."""
    try:
        about = header.read(one)
        first = about.first_index if about.index >= 0 else None
        if first is not None and not (start <= about.index and first < end):
            return None
        form = form_of(one[about.size :])
        messages = form.messages(one[about.size :])
    except Corrupted as error:
        return error
    if first is not None:
        messages = [each for each in messages if start <= first + each.place < end]
    found.add(entry_id, first, form.NAME, messages)
    return None


def compare(twin: Twin, entries: list[bytes], start: int = 0, end: int = ANY[1]) -> int:
    """The same rows both ways; how many entries the twin has taken."""
    expected, found = ListedColumns(EVERYTHING), twin(EVERYTHING)
    at = taken = 0
    while at < len(entries):
        stopped = found.add_entries(entries, at, 50, start, end, True)
        taken += stopped - at
        at = stopped
        if at < len(entries):
            add_by_form(found, entries[at], 50 + at, start, end)
            at += 1
    for place, one in enumerate(entries):
        add_by_form(expected, one, 50 + place, start, end)
    assert rows_of(found.take()) == rows_of(expected.take())
    return taken


@pytest.fixture(scope="module")
def twin() -> Twin:
    """What is compiled, also in a process that takes what is not."""
    return compiled_twin()


TIMES = st.one_of(st.integers(-1, 1 << 42), st.sampled_from([-1, 0, (1 << 62), columns.MS_MAX]))
RECORDS = st.lists(
    st.builds(
        Record,
        place=st.just(0),
        timestamp_ms=TIMES,
        key=st.none() | st.binary(max_size=6),
        value=st.none() | st.binary(max_size=20),
        headers=st.lists(
            st.tuples(
                st.sampled_from([b"a", b"", "ü".encode(), b"kafka.headers", b"\xff"]),
                st.none() | st.binary(max_size=4),
            ),
            max_size=3,
        ),
    ),
    min_size=1,
    max_size=5,
).map(lambda found: [one._replace(place=place) for place, one in enumerate(found)])


@st.composite
def kafka_entries(draw) -> bytes:
    records = draw(RECORDS)
    attributes = draw(st.sampled_from([0, 0, 0, 8, 16, 16 | 32, 32]))
    who = draw(st.sampled_from([(-1, -1, -1), (0, 0, 0), (1 << 40, 3, 7)]))
    batch = record_batch._written(records, 5, len(records), attributes, who)
    codec = draw(st.sampled_from([0, 0, 1, 2, 3, 4]))
    if codec:
        batch = record_batch.recompressed(batch, codec)
    return entry(kafka.wrapped(batch, len(records), draw(st.integers(0, 1 << 42))), len(records))


NUMBERS = st.one_of(
    st.integers(0, 3), st.integers(0, 1 << 42), st.sampled_from([(1 << 63) - 1, (1 << 64) - 1])
)


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


@st.composite
def fields(draw, numbers: list[int], octets: list[int], properties: int) -> bytes:
    """Some fields of metadata, now and then of another kind, or twice."""
    made = []
    for _ in range(draw(st.integers(0, 5))):
        match draw(st.sampled_from("nnnoooop?")):
            case "n":
                made.append(field(draw(st.sampled_from(numbers)), draw(NUMBERS)))
            case "o":
                content = st.binary(max_size=5) | st.binary(min_size=8, max_size=8)
                made.append(field(draw(st.sampled_from(octets)), draw(content)))
            case "p":
                name = draw(st.sampled_from([b"a", b"", b"kafka.headers", b"\xff"]))
                pair = field(1, name) + field(2, draw(st.binary(max_size=3)))
                made.append(field(properties, draw(st.sampled_from([pair, field(1, name), b""]))))
            case _:
                made.append(draw(st.sampled_from([b"\x85\x01abcd", b"\x81\x01abcdefgh", b"\x84"])))
    return b"".join(made)


@st.composite
def pulsar_entries(draw) -> bytes:
    about = draw(fields([2, 3, 12, 17, 25, 30, 40, 1], [1, 6, 16, 18, 13, 26, 3, 41], 4))
    if draw(st.booleans()):
        about = field(1, b"producer") + field(2, 7) + field(3, 1 << 41) + about
    count = 0
    payload = draw(st.binary(max_size=30))
    if draw(st.booleans()):
        count = draw(st.integers(0, 4))
        payload = b""
        for _ in range(count):
            value = draw(st.binary(max_size=10))
            one = draw(fields([4, 5, 6, 8, 9, 10, 2], [2, 7, 11, 5], 1))
            one += field(3, len(value)) if draw(st.integers(0, 9)) else b""
            payload += len(one).to_bytes(4, "big") + one + value
        about += field(11, count)
    size = len(payload)
    if draw(st.booleans()):
        codec = draw(st.sampled_from([1, 2, 9]))
        payload = (
            pulsar_compressed(payload, codec) if codec < 9 and draw(st.integers(0, 9)) else payload
        )
        about += field(8, codec) + field(9, size)
    sent = len(about).to_bytes(4, "big") + about + payload
    if draw(st.booleans()):
        sent = b"\x0e\x01abcd" + sent
    return entry(sent, max(count, 1))


def pulsar_compressed(payload: bytes, codec: int) -> bytes:
    import zlib

    import cramjam

    if codec == 1:
        return bytes(cramjam.lz4.compress_block(payload, store_size=False))
    return zlib.compress(payload)


ENTRIES = st.lists(kafka_entries() | pulsar_entries(), max_size=4)


@given(ENTRIES, st.data())
@example([entry(bytes(4))], None)
def test_entries_alike(twin, entries, data) -> None:
    """Also of entries in which some bytes are others."""
    start, end = ANY
    if data is not None and entries and data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(entries) - 1))
        rotten = bytearray(entries[place])
        for _ in range(data.draw(st.integers(0, 3))):
            rotten[data.draw(st.integers(0, len(rotten) - 1))] = data.draw(st.integers(0, 255))
        entries[place] = bytes(rotten)
        start = data.draw(st.sampled_from([0, 998, 1_000, 1_002]))
        end = data.draw(st.sampled_from([1_001, 1_003, ANY[1]]))
    compare(twin, entries, start, end)


def test_what_producers_send_is_taken(twin) -> None:
    """That it is taken at all, which the rows alone do not show."""
    records = [Record(place, 1 << 41, b"k", b"v", [(b"h", b"1")]) for place in range(3)]
    batch = record_batch.batch_of(records, 0, 3)
    entries = [
        entry(kafka.wrapped(batch, 3, 1 << 41), 3),
        entry(kafka.wrapped(record_batch.recompressed(batch, 4), 3, 1 << 41), 3),
        entry(pulsar.entry_of(records, 0, 1 << 41, "p"), 3),
        entry(pulsar.entry_of([], 0, 1 << 41, "p")),
    ]
    assert compare(twin, entries) == 4
    assert compare(twin, entries, 999, 1_000) == 4
    stranger = entries[0][len(entries[0]) - len(kafka.wrapped(batch, 3, 1 << 41)) :]
    assert compare(twin, [entries[0], stranger, entry(mqtt.BEGINS), entries[2]]) == 2


def test_a_batch_that_claims_to_be_a_million(twin) -> None:
    """No bytes when compressed, and gigabytes of rows: a batch that other readers refuse."""
    payload = bytes(4 * (BATCH_MESSAGES_MAX + 1))
    about = field(1, b"p") + field(2, 7) + field(3, 1 << 41) + field(11, BATCH_MESSAGES_MAX + 1)
    about += field(8, 1) + field(9, len(payload))
    sent = len(about).to_bytes(4, "big") + about + pulsar_compressed(payload, 1)
    assert compare(twin, [entry(sent)]) == 0


def test_a_producer_of_a_long_name(twin) -> None:
    about = field(1, b"p" * 2_000) + field(2, 7) + field(3, 1 << 41)
    assert compare(twin, [entry(len(about).to_bytes(4, "big") + about + b"v")]) == 0


def test_messages_of_transactions_are_left_to_the_caller(twin) -> None:
    records = [Record(0, 1 << 41, b"k", b"v")]
    batch = record_batch._written(records, 0, 1, record_batch.TRANSACTIONAL, (7, 0, 0))
    one = entry(kafka.wrapped(batch, 1, 1 << 41))
    found = twin(("value",))
    assert found.add_entries([one], 0, 0, *ANY, False) == 0
    assert (found.rows, rows_of(found.take())) == (0, [])
    assert found.add_entries([one], 0, 0, *ANY, True) == 1


def test_a_run_is_left_off_where_the_columns_are_full(twin) -> None:
    records = [Record(place, 1 << 41, None, b"v") for place in range(columns.ROWS_MAX)]
    one = entry(pulsar.entry_of(records, 0, 1 << 41, "p"), len(records), 1 << 20)
    found = twin(("value",))
    assert found.add_entries([one] * 3, 1, 0, *ANY, True) == 2
    assert found.full
    assert found.add_entries([one] * 3, 2, 0, *ANY, True) == 2
    assert len(rows_of(found.take())) == columns.ROWS_MAX


@pytest.mark.parametrize("wrong", [None, "text", 5, bytearray(b"x")])
def test_other_things_than_bytes_are_refused(twin, wrong) -> None:
    found = twin(EVERYTHING)
    with pytest.raises(TypeError):
        found.add_entries([wrong], 0, 0, *ANY, True)
    with pytest.raises(TypeError):
        found.add(0, 0, "pulsar", [FULL, FULL._replace(value=5)])
    assert rows_of(found.take()) == []
