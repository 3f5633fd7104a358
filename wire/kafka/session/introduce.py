"""The first words: which APIs there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from wire.kafka.errors import NONE, UNSUPPORTED_VERSION
from wire.kafka.messages.basics import ApiVersionsResponse, SupportedApi

if TYPE_CHECKING:
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import Asked

SERVED: Final[Mapping[int, tuple[int, int]]] = {
    0: (0, 11),  # 0 to 2 are refused; clients of old compress nothing where they are not listed
    1: (4, 12),
    2: (1, 9),
    3: (0, 12),
    8: (2, 9),
    9: (1, 9),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    18: (0, 4),
    19: (2, 7),
    20: (1, 5),
    22: (0, 4),
    23: (2, 4),
    37: (0, 3),
    42: (0, 2),
    47: (0, 0),
    60: (0, 2),
}
"""What we say that we serve; nothing without a handler is among it."""


async def on_api_versions(_session: KafkaSession, asked: Asked) -> ApiVersionsResponse:
    known = asked.request is not None
    return ApiVersionsResponse(
        error_code=NONE if known else UNSUPPORTED_VERSION,
        api_keys=[
            SupportedApi(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in SERVED.items()
        ],
    )


HANDLERS: Final[Mapping[int, Any]] = {18: on_api_versions}
