"""Requests that change something, with a line each in the audit trail (`core/security/audit.py`).

Named are the resources, and what is done to them as far as it is no secret: names of configs
without their values, users without their passwords.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import NO_UUID, Message
from magnetar.wire.kafka.messages.configs import ConfigResourceType
from magnetar.wire.kafka.session.configs.acls import ALLOW

if TYPE_CHECKING:
    from magnetar.core.security.access import Access
    from magnetar.core.security.audit import AuditTrail
    from magnetar.wire.kafka.session.context import Handler, RequestContext

DONE: Final = "done"


def audited(handlers: Mapping[int, Handler], access: Access) -> Mapping[int, Handler]:
    """The handlers, of which those that change something write a line for each request."""
    trail = access.audit
    if trail is None:
        return handlers
    return {
        key: _Audited(key, handler, trail) if key in CHANGES else handler
        for key, handler in handlers.items()
    }


class _Audited:
    """One handler, and its lines."""

    def __init__(self, key: int, handler: Handler, trail: AuditTrail) -> None:
        self._operation = ApiKey(key).name.title().replace("_", "")
        self._named = CHANGES[key]
        self._handler = handler
        self._trail = trail

    def __call__(self, context: RequestContext, request: Any) -> Awaitable[Any]:
        answer = self._handler(context, request)
        if getattr(request, "validate_only", False):
            return answer
        return self._noted(context, list(self._named(request)), answer)

    async def _noted(
        self, context: RequestContext, names: list[str], answer: Awaitable[Any]
    ) -> Any:
        caller = context.caller
        outcome = "failed"
        try:
            response = await answer
            codes = sorted(set(_codes(response)))
            outcome = f"error {', '.join(map(str, codes))}" if codes else DONE
        finally:
            self._trail.changed(caller.identity, caller.host, self._operation, names, outcome)
        return response


def _codes(message: Any) -> Iterator[int]:
    """The error codes in an answer."""
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if name == "error_code" and value:
            yield value
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Message):
                    yield from _codes(item)


# -- the resources of each request ----------------------------------------------------------------


def _topics(request: Any) -> Iterator[str]:
    for topic in (*getattr(request, "topics", ()), *getattr(request, "topic_names", ())):
        yield f"topic {topic if isinstance(topic, str) else _name(topic)}"


def _name(topic: Any) -> str:
    """The name of a topic, or its id: Kafka's tools delete by ids."""
    topic_id: bytes = getattr(topic, "topic_id", NO_UUID)
    return topic.name or (topic_id.hex() if topic_id != NO_UUID else "")


def _groups(request: Any) -> Iterator[str]:
    for group in request.groups_names:
        yield f"group {group}"


def _offsets(request: Any) -> Iterator[str]:
    for topic in request.topics:
        yield f"offsets of group {request.group_id} in topic {topic.name}"


def _configs(request: Any) -> Iterator[str]:
    for resource in request.resources:
        kind = _word(ConfigResourceType, resource.resource_type)
        names = ", ".join(one.name for one in resource.configs)
        yield f"{kind} {resource.resource_name}: {names}"


def _acls(request: Any) -> Iterator[str]:
    for one in request.creations:
        yield (
            f"{one.principal} {'ALLOW' if one.permission_type == ALLOW else 'DENY'} "
            f"{_word(Action, one.operation)} on {_word(ResourceType, one.resource_type)} "
            f"{one.resource_name} from host {one.host}"
        )


def _acl_filters(request: Any) -> Iterator[str]:
    for one in request.filters:
        parts = one.principal_filter, one.resource_name_filter, one.host_filter
        principal, name, host = ("any" if part is None else part for part in parts)
        kind = _word(ResourceType, one.resource_type_filter)
        yield f"ACLs of {principal} on {kind} {name} from host {host}"


def _users(request: Any) -> Iterator[str]:
    for one in request.deletions:
        yield f"user {one.name}: deleted"
    for one in request.upsertions:
        yield f"user {one.name}: set"


def _quotas(request: Any) -> Iterator[str]:
    for one in request.entries:
        entity = ", ".join(
            f"{part.entity_type} {'default' if part.entity_name is None else part.entity_name}"
            for part in one.entity
        )
        changes = ", ".join(
            f"{change.key} removed" if change.remove else f"{change.key}={change.value:g}"
            for change in one.ops
        )
        yield f"{entity}: {changes}"


def _nothing(_request: Any) -> Iterable[str]:
    return ()


def _word(kinds: type[IntEnum], number: int) -> str:
    try:
        return kinds(number).name.lower()
    except ValueError:  # a wildcard, or one that there is not
        return f"any ({number})"


CHANGES: Final[Mapping[int, Callable[[Any], Iterable[str]]]] = {
    ApiKey.CREATE_TOPICS: _topics,
    ApiKey.DELETE_TOPICS: _topics,
    ApiKey.DELETE_RECORDS: _topics,
    ApiKey.CREATE_PARTITIONS: _topics,
    ApiKey.CREATE_ACLS: _acls,
    ApiKey.DELETE_ACLS: _acl_filters,
    ApiKey.ALTER_CONFIGS: _configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _configs,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _users,
    ApiKey.ALTER_CLIENT_QUOTAS: _quotas,
    ApiKey.DELETE_GROUPS: _groups,
    ApiKey.OFFSET_DELETE: _offsets,
    ApiKey.WRITE_TXN_MARKERS: _nothing,
    ApiKey.ELECT_LEADERS: _nothing,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _nothing,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _nothing,
}
"""By API key."""
