"""What is kept of a group comes back as it was."""

from magnetar.wire.kafka.groups.classic.group_record import (
    StoredGroup,
    StoredMember,
    decode,
    encode,
)


def test_round_trip() -> None:
    member = StoredMember("m", None, "client", "/h", 10.0, 60.0, (("range", b"\x00\xff"),), b"\x01")
    kept = StoredGroup(7, "consumer", "range", "m", (member,))
    assert decode(encode(kept)) == kept
