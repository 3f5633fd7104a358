"""One message in words that every protocol has."""

from magnetar.core.entry.record import NO_TIME, Record


def test_a_message_without_headers() -> None:
    one = Record(0, NO_TIME, None, b"v")
    assert not one.headers
    assert one._replace(headers=((b"h", None),)) != one, "a header without a value is a header"
