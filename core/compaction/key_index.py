"""Where each key was last: the table of a compaction, and how an entry's keys are asked for. Pure.

`KeyIndex` is the reference, on a dict. Its compiled twin is a table with open addressing: 24 bytes
a slot, 16 of which are the key's SipHash-2-4 of 128 bits and 8 its order, at most three quarters of
them used, so 32 to 64 bytes a key, and for a moment half of that again while the table grows.

Only hashes are kept and compared. The twin's is keyed with `seed`, which no client knows, so none
can choose keys that collide; of ten million keys, two do with a chance of 2**-82. The reference
takes the first 120 bits of BLAKE2b of long keys (Kafka's map uses MD5).

An order is a number that ascends from message to message: an index, or what `value_rule.py` makes.

Invariants: a key's order is that of the message noted last, whose order is the highest so far;
twins have the same results. One thread uses a table at a time; the twin lets others run meanwhile.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from hashlib import blake2b
from itertools import islice
from typing import Final

from magnetar.core.entry.compaction import ROW, KeyRows
from magnetar.core.native import quickest

DIGEST_BYTES: Final = 15
"""So that a digest takes 48 bytes of memory; one byte more takes 64."""
SEED_BYTES: Final = 16
LOST, STAYS, TOMBSTONE, KEYLESS = range(4)
"""What is known of a message: a later one has its key; it is the last of its key, and has a value,
or none; it has no key."""
ORDER_BYTES: Final = 8
_ORDERS_PER_STEP: Final = 1_000


def short(key: bytes) -> bytes:
    """The key, or the digest of a long one."""
    if len(key) < DIGEST_BYTES:
        return key
    return blake2b(key, digest_size=DIGEST_BYTES).digest()


class KeyIndex:
    """See the module's docstring."""

    __slots__ = ("_orders",)

    def __init__(self, seed: bytes) -> None:
        assert len(seed) == SEED_BYTES, "the twin needs a key"
        self._orders: dict[bytes, int] = {}
        """In ascending order: what is noted again goes to the end."""

    def __len__(self) -> int:
        return len(self._orders)

    def note(self, key: bytes, order: int) -> None:
        """Note a message."""
        digest = short(key)
        self._orders.pop(digest, None)
        self._orders[digest] = order

    def order_of(self, key: bytes) -> int:
        """The order of its last message; -1 if there is none."""
        return self._orders.get(short(key), -1)

    def note_rows(self, keys: KeyRows, base: int, last_place: int) -> None:
        """Note an entry's messages; their orders are `base` and the place, up to that one."""
        orders, data = self._orders, keys.data
        pop = orders.pop
        for place, begin, size, _ in ROW.iter_unpack(keys.rows):
            if size < 0:
                continue
            key = data[begin : begin + size]
            if size >= DIGEST_BYTES:
                key = short(key)
            pop(key, None)
            orders[key] = base + (place if place < last_place else last_place)

    def unknown(self, keys: KeyRows) -> bytearray:
        """What is known of each message of an entry that comes before all that was noted."""
        orders, data, judged = self._orders, keys.data, bytearray()
        for _, begin, size, value in ROW.iter_unpack(keys.rows):
            if size < 0:
                judged.append(KEYLESS)
            elif short(data[begin : begin + size]) in orders:
                judged.append(LOST)
            else:
                judged.append(STAYS if value > 0 else TOMBSTONE)
        return judged

    def orders(self) -> bytes:
        """The order of each key's last message, ascending, as unsigned numbers of 64 bits."""
        found, rest = array("Q"), iter(self._orders.values())
        while part := list(islice(rest, _ORDERS_PER_STEP)):
            found.extend(part)
        return found.tobytes()

    def forget(self, count: int) -> bool:
        """Forget so many keys, or all; returns whether there are more."""
        orders = self._orders
        for _ in range(min(count, len(orders))):
            orders.popitem()
        return bool(orders)


def py_among(orders: bytes, keys: KeyRows, base: int, last_place: int) -> bytearray:
    """What is known of each message of an entry, if these `orders` are the last ones of all keys
    (`KeyIndex.orders`).
    """
    every = memoryview(orders).cast("Q")
    at = bisect_left(every, base)
    here = set(every[at : bisect_left(every, base + last_place + 1, at)])
    judged = bytearray()
    for place, _, size, value in ROW.iter_unpack(keys.rows):
        if size < 0:
            judged.append(KEYLESS)
        elif base + min(place, last_place) not in here:
            judged.append(LOST)
        else:
            judged.append(STAYS if value > 0 else TOMBSTONE)
    return judged


new_key_index: Final = quickest(KeyIndex, "magnetar.core.compaction.compiled")
among: Final = quickest(py_among, "magnetar.core.compaction.compiled")
