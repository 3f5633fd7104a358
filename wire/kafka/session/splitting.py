"""Splits a request into what its client may have and what is refused (`rights.py`). Plain calls.

Invariant: no item reaches a handler unless it is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from magnetar.wire.kafka.apis import APIS
from magnetar.wire.kafka.codec.declare import NO_UUID, Message, Request, Response
from magnetar.wire.kafka.errors import NONE, OPERATION_NOT_ATTEMPTED, UNKNOWN_TOPIC_ID
from magnetar.wire.kafka.session import refusals
from magnetar.wire.kafka.session.rights import CODES, RIGHTS, ItemRight, Rights
from magnetar.wire.kafka.session.topics import internal

if TYPE_CHECKING:
    from magnetar.wire.kafka.partition.logs import Logs
    from magnetar.wire.kafka.session.context import Caller


class Split(NamedTuple):
    """What remains of a request."""

    request: Request | None
    """For the handler; None if nothing remains."""
    refused: Sequence[Message] = ()
    """The answers of refused items, to be added to the handler's."""
    response: Response | None = None
    """The whole answer if nothing remains."""


def unknown_ids(logs: Logs, key: int, request: Request | None) -> list[bytes]:
    """Ids of topics in a request whose names are not in the cache."""
    rights = RIGHTS.get(key)
    if rights is None or request is None:
        return []
    found = (getattr(item, "topic_id", NO_UUID) for item in _items(rights, request))
    return [
        one
        for one in found
        if one not in (NO_UUID, internal.TOPIC_ID) and not logs.name_at_once(one)
    ]


def split(caller: Caller, logs: Logs, key: int, request: Request) -> Split:
    """What the client may have of a request."""
    rights = RIGHTS.get(key)
    if rights is None:
        return Split(request)
    for need in rights.whole(request):
        if not _may_instead(caller, rights) and not caller.must(*need):
            return Split(None, response=refusals.refusal(key, request, CODES[need.kind]))
    if rights.item is None or (rights.instead is not None and caller.may(*rights.instead)):
        return Split(request)
    refused = [
        (item, code)
        for item in _items(rights, request)
        if (code := _refusal(caller, logs, rights.item, item)) != NONE
    ]
    return _rest(key, rights, request, refused) if refused else Split(request)


def _may_instead(caller: Caller, rights: Rights) -> bool:
    """Whether another right stands for those of the whole."""
    return rights.item is None and rights.instead is not None and caller.may(*rights.instead)


def _rest(key: int, rights: Rights, request: Request, refused: list[tuple[Any, int]]) -> Split:
    without = {id(item) for item, _ in refused}
    allowed = [item for item in _items(rights, request) if id(item) not in without]
    if rights.together:
        refused += [(item, OPERATION_NOT_ATTEMPTED) for item in allowed]
        allowed = []
    if not allowed:
        response = refusals.blank(APIS[key].response, NONE, request)
        refusals.add(key, response, refusals.rows(key, refused))
        return Split(None, response=response)
    lists = {
        name: [item for item in getattr(request, name) or () if id(item) not in without]
        for name in rights.items
    }
    return Split(replace(request, **lists), refusals.rows(key, refused))


def _items(rights: Rights, request: Request) -> Iterator[Any]:
    for name in rights.items:
        yield from getattr(request, name) or ()


def _refusal(caller: Caller, logs: Logs, right: ItemRight, item: Any) -> int:
    name = _name_of(logs, item)
    if name is None:
        return UNKNOWN_TOPIC_ID
    need = right(item, name)
    return NONE if caller.must(*need) else CODES[need.kind]


def _name_of(logs: Logs, item: Any) -> str | None:
    """The name of a topic; None for an unknown id, empty for an item that is no topic."""
    if isinstance(item, str):
        return item
    name: str | None = getattr(item, "name", None) or getattr(item, "topic", None)
    if name:
        return name
    topic_id = getattr(item, "topic_id", NO_UUID)
    if topic_id == NO_UUID:
        return ""
    return (
        internal.OFFSETS if topic_id == internal.TOPIC_ID else logs.name_at_once(topic_id) or None
    )
