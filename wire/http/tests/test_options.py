"""What HTTP is given."""

from magnetar.wire.http.options import HttpOptions, always_ready
from magnetar.wire.pulsar.metadata import Entry, read


def test_a_broker_is_called_by_its_address() -> None:
    assert HttpOptions(http_url="http://a:8080").broker_id == "a:8080"
    assert HttpOptions(http_url_tls="https://a:8443").broker_id == "a:8443"
    assert HttpOptions().broker_id == ""


def test_nothing_is_wrong_by_default() -> None:
    assert always_ready() is None


def test_the_pulsar_wire_takes_entries_apart_as_http_wants() -> None:
    """The two fronts do not import each other; whoever composes them joins them so."""
    options = HttpOptions(read_entry=read)
    metadata = b"\x0a\x01p\x10\x07\x18\x01"
    tail = b"\x0e\x01\0\0\0\0" + len(metadata).to_bytes(4, "big") + metadata + b"payload"
    assert options.read_entry is not None
    entry = options.read_entry(tail)
    assert isinstance(entry, Entry)
    assert (entry.metadata.producer_name, entry.metadata.sequence_id) == ("p", 7)
    assert entry.payload == b"payload"
