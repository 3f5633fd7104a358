"""Builds responses that are long lists, element by element, with checkpoints in between.

Elements take ten times as much memory as objects as encoded, and encoding a hundred thousand of
them in one call blocks the loop for a second.
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
"""Elements that are encoded together."""


async def long_list(
    context: RequestContext,
    response: Response,
    things: Sequence[Thing],
    make: Callable[[Thing], Awaitable[Message]],
) -> list[bytes]:
    """Encode `response` with the elements in its last field, an empty list, and behind them the
    answers of refused items.
    """
    parts: list[bytes] = []
    made: list[Message] = []
    async for thing in Cooperative(things):
        made.append(await make(thing))
        if len(made) == FEW:
            parts.append(encode_parts(context.key, context.version, made))
            made.clear()
    parts.append(encode_parts(context.key, context.version, [*made, *context.refused]))
    whose = (context.key, context.version, context.correlation_id)
    return encode_listed(whose, response, len(things) + len(context.refused), parts)
