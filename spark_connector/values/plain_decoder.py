"""Values of one number, truth or time, as Pulsar's clients write them: big-endian, of fixed size
(`IntSchema.java` and its sisters of 4.2). Dates and times are milliseconds since 1970 in 8 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.entry.columns.columns import MS_MAX
from magnetar.spark_connector.values.misfit import Misfit

if TYPE_CHECKING:
    import pyarrow as pa

KINDS: Final = {
    "BOOLEAN": (">B", "bool_"),
    "INT8": (">b", "int8"),
    "INT16": (">h", "int16"),
    "INT32": (">i", "int32"),
    "INT64": (">q", "int64"),
    "FLOAT": (">f", "float32"),
    "DOUBLE": (">d", "float64"),
    "DATE": (">q", "timestamp"),
    "TIMESTAMP": (">q", "timestamp"),
}
"""Pulsar's names, the layout of a value, and Arrow's type."""


def arrow_type(kind: str) -> pa.DataType:
    import pyarrow as pa

    _, name = KINDS[kind]
    return pa.timestamp("us", tz="UTC") if name == "timestamp" else getattr(pa, name)()


def decoder_of(kind: str) -> Callable[[bytes], Any]:
    """What decodes values; `Misfit` for those that do not fit."""
    layout, name = KINDS[kind]
    plain = struct.Struct(layout)
    is_time, is_truth = name == "timestamp", kind == "BOOLEAN"

    def decoded(data: bytes) -> Any:
        if len(data) != plain.size:
            raise Misfit(f"it has {len(data)} bytes, and {kind} has {plain.size}")
        (value,) = plain.unpack(data)
        if is_truth:
            return value != 0
        if not is_time:
            return value
        if not -MS_MAX <= value <= MS_MAX:
            raise Misfit(f"{value} ms is too far from 1970")
        return value * 1000

    return decoded
