"""Records in memory, and their weight."""

from __future__ import annotations

from magnetar.wire.mqtt.clients.kept_records import OVERHEAD_BYTES, KeptRecords


def test_the_weight_follows_the_records() -> None:
    records = KeptRecords()
    records.keep("one", b"x" * 100)
    records.keep("two", b"y" * 10)
    records.keep("one", b"z" * 50)
    assert (list(records), len(records), records.get("one")) == (["two", "one"], 2, b"z" * 50)
    assert records.bytes == 2 * OVERHEAD_BYTES + 6 + 60
    assert records.remove("one")
    assert not records.remove("one")
    assert records.remove("two")
    assert (records.bytes, len(records), "two" in records) == (0, 0, False)
