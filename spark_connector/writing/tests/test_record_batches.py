"""Record batches as the server reads them."""

import pytest

from magnetar.core.entry.kafka.record_batch import TRANSACTIONAL, header_of, records_of
from magnetar.core.entry.record import Record
from magnetar.core.kernel.checksum import crc32c
from magnetar.spark_connector.writing.record_batches import BatchEncoder, ProducerIdentity


@pytest.mark.parametrize("codec", range(5))
def test_what_is_written_is_read(codec: int) -> None:
    encoder = BatchEncoder(40)
    encoder.add(b"k", b"v", [(b"h", b"1"), (b"n", None)], 2000)
    encoder.add(None, None, [], 1500)
    encoder.add(b"", b"x" * 500, [], 3000)
    assert len(encoder) == 3
    batch = encoder.encoded(ProducerIdentity(7, 2), codec)
    assert (batch.rows, batch.first_sequence) == (3, 40)
    assert records_of(batch.data) == [
        Record(0, 2000, b"k", b"v", [(b"h", b"1"), (b"n", None)]),
        Record(1, 1500, None, None, ()),
        Record(2, 3000, b"", b"x" * 500, ()),
    ]
    header = header_of(batch.data)
    assert (header.producer_id, header.producer_epoch, header.first_sequence) == (7, 2, 40)
    assert (header.first_timestamp, header.last_timestamp, header.attributes) == (2000, 3000, codec)
    assert header.checksum == crc32c(batch.data[21:])


def test_a_batch_of_a_transaction_says_so() -> None:
    encoder = BatchEncoder(1 << 31)
    encoder.add(None, b"v", [], 1)
    header = header_of(encoder.encoded(ProducerIdentity(7, 2, "t"), 0).data)
    assert header.attributes == TRANSACTIONAL
    assert header.first_sequence == 0


def test_it_knows_its_size() -> None:
    encoder = BatchEncoder(0)
    encoder.add(b"k" * 10, b"v" * 100, [(b"h", b"w" * 50)], 1)
    assert 160 < encoder.size < 190
