"""Values of Pulsar's KEY_VALUE schemas, as a struct of `key` and `value`.

Each side has its schema, and is decoded by it (`decoding.py`). Where the sides are is said by the
schema's encoding (`KeyValue.java` and `TypedMessageBuilderImpl.java` of 4.2):

    INLINE       both in the payload, each behind its length: four bytes, -1 for a side that is null
    SEPARATED    the key is the message's key, the value its payload; either may be absent

A message without a payload is null if the pair is inline, and if it has no key, either. Invariant:
a pair of which one side does not fit is null, as any value is that does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from magnetar.spark_connector.values.misfit import Misfit

if TYPE_CHECKING:
    import pyarrow as pa

SIDES: Final = ("key", "value")
_LENGTH: Final = Layout(">i")
_ABSENT: Final = -1

Side = bytes | None


class SplitPairs(Struct):
    """The sides of some pairs, by rows."""

    keys: list[Side]
    values: list[Side]
    absent: list[bool]
    """Whether there is no pair at all."""
    misfits: dict[int, str]


def inline_pair(payload: bytes) -> tuple[Side, Side]:
    """The sides of a payload; `Misfit` if it is none."""
    key, at = _side(payload, 0, "key")
    value, at = _side(payload, at, "value")
    if at != len(payload):
        raise Misfit(f"{len(payload) - at} bytes are left behind the pair")
    return key, value


def _side(payload: bytes, at: int, which: str) -> tuple[Side, int]:
    begins = at + _LENGTH.size
    if begins > len(payload):
        raise Misfit(f"it ends before the length of its {which}")
    (size,) = _LENGTH.unpack_from(payload, at)
    if size == _ABSENT:
        return None, begins
    if not 0 <= size <= len(payload) - begins:
        raise Misfit(f"its {which} has {size} bytes, of {len(payload) - begins}")
    return payload[begins : begins + size], begins + size


def split_inline(payloads: Sequence[Side]) -> SplitPairs:
    """The sides of payloads."""
    found = SplitPairs([], [], [payload is None for payload in payloads], {})
    for number, payload in enumerate(payloads):
        key = value = None
        if payload is not None:
            try:
                key, value = inline_pair(payload)
            except Misfit as misfit:
                found.misfits[number] = str(misfit)
        found.keys.append(key)
        found.values.append(value)
    return found


def split_apart(keys: Sequence[Side], values: Sequence[Side]) -> SplitPairs:
    """The sides of messages whose keys are those of their pairs."""
    absent = [key is None and value is None for key, value in zip(keys, values, strict=True)]
    return SplitPairs(list(keys), list(values), absent, {})


def joined(split: SplitPairs, columns: Sequence[Any]) -> pa.Array:
    """The column of pairs, of the columns of their sides; those that do not fit are null."""
    import pyarrow as pa

    mask = [gone or number in split.misfits for number, gone in enumerate(split.absent)]
    return pa.StructArray.from_arrays(
        columns, names=list(SIDES), mask=pa.array(mask, type=pa.bool_())
    )
