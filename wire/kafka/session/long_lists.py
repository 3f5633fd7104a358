"""Responses that are long lists: each element is made and encoded before the next rest.

As objects they take ten times as much memory as encoded, and to encode a hundred thousand of them
in one go takes a second of the loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.wire.kafka.apis import encode_listed, encode_parts

if TYPE_CHECKING:
    from magnetar.wire.kafka.codec.declare import Message, Response
    from magnetar.wire.kafka.session.context import RequestContext

Thing = TypeVar("Thing")

FEW: Final = 100
"""So many are encoded together."""


async def long_list(
    context: RequestContext,
    response: Response,
    things: Sequence[Thing],
    make: Callable[[Thing], Awaitable[Message]],
) -> list[bytes]:
    """The whole response, encoded: `response` with its last field, an empty list, filled."""
    parts: list[bytes] = []
    made: list[Message] = []
    async for thing in Cooperative(things):
        made.append(await make(thing))
        if len(made) == FEW:
            parts.append(encode_parts(context.key, context.version, made))
            made.clear()
    parts.append(encode_parts(context.key, context.version, made))
    whose = (context.key, context.version, context.correlation_id)
    return encode_listed(whose, response, len(things), parts)
