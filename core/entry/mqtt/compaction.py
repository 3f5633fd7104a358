"""A run, unpacked for compaction. Pure.

The remaining messages keep their places, so that the entry covers the same indexes; a run without
messages is a header alone.

Invariant: the bytes of a remaining message are unchanged.
"""

from __future__ import annotations

from magnetar.core.entry.compaction import Item, KeyRows, Removal, rows_of
from magnetar.core.entry.mqtt import run as runs
from magnetar.core.entry.mqtt.properties import key_of, value_of
from magnetar.core.entry.mqtt.run import PublishRun


class UnpackedRun:
    """An unpacked run."""

    __slots__ = ("_before", "_packets", "_run")

    notes_tombstone_time = False
    loses_some = is_decided = True
    producer = None
    tombstones_until_ms = -1

    def __init__(self, before: bytes, run: PublishRun) -> None:
        """`before` are the bytes before the run. Raises `Corrupted`."""
        self._before = before
        self._run = run
        self._packets = list(run)

    @property
    def items(self) -> list[Item]:
        found = []
        for packet in self._packets:
            value = value_of(packet)
            found.append(Item(packet.place, key_of(packet), -1 if value is None else len(value)))
        return found

    def key_rows(self) -> KeyRows:
        return rows_of(self.items)

    def without(self, fate: Removal) -> bytes:
        run = self._run
        left = [packet for packet in self._packets if packet.place not in fate.lost]
        head = runs.head(
            run.client_id,
            has_properties=run.has_properties,
            places=[packet.place for packet in left],
        )
        packets = [run.data[packet.begin : packet.end] for packet in left]
        return b"".join((self._before, head, *packets))
