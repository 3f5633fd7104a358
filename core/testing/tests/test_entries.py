"""What the maker writes, the reader of metadata finds."""

from magnetar.core.entry.pulsar import metadata
from magnetar.core.testing.entries import entry


def test_every_field_is_found_again() -> None:
    made = entry(b"x", key=b"k", published_ms=300, deliver_at_ms=400, chunk=(b"u", 1, 3))
    assert made.endswith(b"x")
    assert metadata.sticky_key(made) == b"k"
    assert metadata.publish_time(made) == 300
    assert metadata.deliver_at_time(made) == 400
    assert metadata.chunk(made) == (b"u", 1, 3)


def test_what_is_not_said_is_not_there() -> None:
    assert metadata.deliver_at_time(entry()) is None
    assert metadata.chunk(entry()) is None
    assert metadata.sticky_key(entry()) == b"p-0"
