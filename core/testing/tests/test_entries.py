"""What the maker writes, the reader of metadata finds."""

from magnetar.core.entry import pulsar_metadata
from magnetar.core.testing.entries import entry


def test_every_field_is_found_again() -> None:
    made = entry(b"x", key=b"k", published_ms=300, deliver_at_ms=400, chunk=(b"u", 1, 3))
    assert made.endswith(b"x")
    assert pulsar_metadata.sticky_key(made) == b"k"
    assert pulsar_metadata.publish_time(made) == 300
    assert pulsar_metadata.deliver_at_time(made) == 400
    assert pulsar_metadata.chunk(made) == (b"u", 1, 3)


def test_what_is_not_said_is_not_there() -> None:
    assert pulsar_metadata.deliver_at_time(entry()) is None
    assert pulsar_metadata.chunk(entry()) is None
    assert pulsar_metadata.sticky_key(entry()) == b"p-0"
