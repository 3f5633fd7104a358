"""The first words: which APIs there are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from magnetar.wire.kafka.errors import INVALID_REQUEST, NONE, UNSUPPORTED_VERSION
from magnetar.wire.kafka.messages.basics import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedApi,
)

if TYPE_CHECKING:
    from magnetar.wire.kafka.session.session import KafkaSession
    from magnetar.wire.kafka.wire import KafkaRequest

NAMED_VERSION: Final = 3
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?", re.ASCII)

SERVED: Final[Mapping[int, tuple[int, int]]] = {
    0: (0, 13),  # 0 to 2 are refused; clients of old compress nothing where they are not listed
    1: (4, 18),
    2: (1, 10),
    3: (0, 13),
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    17: (0, 1),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    23: (2, 4),
    24: (0, 3),
    25: (0, 4),
    26: (0, 4),
    27: (1, 1),
    28: (0, 4),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    34: (1, 2),
    35: (1, 4),
    36: (0, 2),
    37: (0, 3),
    42: (0, 2),
    43: (0, 2),
    44: (0, 1),
    45: (0, 1),
    46: (0, 0),
    47: (0, 0),
    55: (0, 2),
    60: (0, 2),
    61: (0, 0),
    65: (0, 0),
    66: (0, 1),
    68: (0, 1),
    69: (0, 1),
    74: (0, 1),
    75: (0, 0),
}
"""What we say that we serve; nothing without a handler is among it."""


async def on_api_versions(_session: KafkaSession, asked: KafkaRequest) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=_refusal(asked),
        api_keys=[
            SupportedApi(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in SERVED.items()
        ],
    )


def _refusal(asked: KafkaRequest) -> int:
    """A version that we do not know is answered all the same; from 3 on a client has a name."""
    request = asked.request
    if request is None:
        return UNSUPPORTED_VERSION
    assert isinstance(request, ApiVersionsRequest)
    said = (request.client_software_name, request.client_software_version)
    named = asked.version < NAMED_VERSION or all(_NAME.fullmatch(name) for name in said)
    return NONE if named else INVALID_REQUEST


HANDLERS: Final[Mapping[int, Any]] = {18: on_api_versions}
