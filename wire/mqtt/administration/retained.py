"""Retained messages, as administrators list, read and delete them.

A deletion is stored like that by a client, but no subscriber is sent anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio
from msgspec.structs import replace

from magnetar.core.entry.mqtt import properties as stored_properties
from magnetar.core.entry.mqtt.properties import MessageProperty, expires_at, fields
from magnetar.core.kernel.errors import Invalid, InvalidName, NotFound
from magnetar.core.ports.client_administration import Page, RetainedDetails, RetainedQuery
from magnetar.wire.mqtt import topics
from magnetar.wire.mqtt.administration.pages import page_of
from magnetar.wire.mqtt.services import MqttServices
from magnetar.wire.mqtt.storage.retained import DELETED_AT_ONCE

_NAMES: Final = {
    stored_properties.CONTENT_TYPE: "contentType",
    stored_properties.RESPONSE_TOPIC: "responseTopic",
}


class MqttRetainedAdministration:
    """See the module's docstring."""

    def __init__(self, services: MqttServices) -> None:
        self._retained = services.retained

    async def topics(self, query: RetainedQuery) -> Page[str]:
        if query.filter:
            try:
                topics.check_filter(query.filter)
            except InvalidName as error:
                raise Invalid(f"filter: {error}") from None
        names = self._retained.topics(query.filter or None)
        found, following = await page_of(names, query.after, query.limit)
        return Page(found, following)

    async def message(self, topic: str) -> RetainedDetails:
        _check_name(topic)
        message = await self._retained.find(topic)
        if message is None:
            raise NotFound(f"no message is retained for {topic!r}")
        packet = message.packet
        return RetainedDetails(
            topic,
            packet.payload,
            packet.qos,
            message.client_id.decode(),
            message.published_ms,
            expires_at(packet.properties, message.published_ms),
            _shown(packet.properties),
        )

    async def delete(self, topic: str) -> None:
        _check_name(topic)
        if not await self._retained.delete([topic]):
            raise NotFound(f"no message is retained for {topic!r}")

    async def delete_matching(self, query: RetainedQuery) -> int:
        deleted, following = 0, query
        while True:
            page = await self.topics(following)
            deleted += await self._delete_all(page.items)
            left = following.limit - len(page.items)
            if page.next is None or not left:
                return deleted
            following = replace(following, after=page.next, limit=left)

    async def _delete_all(self, found: Sequence[str]) -> int:
        deleted = 0
        for start in range(0, len(found), DELETED_AT_ONCE):
            deleted += await self._retained.delete(found[start : start + DELETED_AT_ONCE])
            await trio.lowlevel.checkpoint()
        return deleted


def _check_name(topic: str) -> None:
    if "\0" in topic or not topics.is_name(topic):
        raise Invalid(f"topic: {topic!r} is no topic name, which has no wildcards and no U+0000")


def _shown(properties: bytes) -> dict[str, object]:
    """The properties by their names in camel case, as 2.2.2.2 has them."""
    found: dict[str, object] = {}
    users: list[tuple[str, str]] = []
    for one in fields(properties):
        if one.number == stored_properties.USER_PROPERTY:
            users.append((_text(one.name), _text(one.value)))
        else:
            found |= _plain(one)
    if users:
        found["userProperties"] = users
    return found


def _plain(one: MessageProperty) -> dict[str, object]:
    if one.number in _NAMES:
        return {_NAMES[one.number]: _text(one.value)}
    if one.number == stored_properties.CORRELATION_DATA:
        return {"correlationData": one.value}
    if one.number == stored_properties.PAYLOAD_FORMAT:
        return {"payloadFormatIndicator": one.value[0]}
    return {"messageExpiryInterval": int.from_bytes(one.value)}


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
