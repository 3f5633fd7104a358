"""REST paths of one level, namespaces or topics: get, set and remove each of its policies.

`?applied=true` returns the value in force for a topic, whichever level sets it. GET of a policy
that is not set is 204, unless its declaration has a value for that.

Invariant: a new value is in the catalog before the answer, and reaches loaded topics right after.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from magnetar.core.kernel.errors import Invalid
from magnetar.core.policy.declaration import Levels, Policy, Scope
from magnetar.core.policy.java_values import CONVERT
from magnetar.core.policy.stored import OWN_CLUSTER
from magnetar.core.policy.values import BacklogQuota, QuotaType
from magnetar.wire.http.admin.policies.limits import check_numbers, checked
from magnetar.wire.http.request import AdminRequest, distinct
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import AdminHandler, Row, Table, changing, plain_text

BODY_OPTIONAL: Final[Mapping[str, frozenset[str]]] = {
    "namespace": frozenset({"deduplication_snapshot_interval", "pause_on_ack_state"}),
    "topic": frozenset(
        {
            "deduplication",
            "deduplication_snapshot_interval",
            "max_unacked_per_consumer",
            "max_unacked_per_subscription",
            "message_ttl_seconds",
            "pause_on_ack_state",
        }
    ),
}
"""Numbers and booleans that a request without a body removes; of others it is refused, as by
Apache's broker (4.2.4, as seen)."""


class Level(Struct, frozen=True):
    """A level of policies: topics, or namespaces."""

    name: Literal["topic", "namespace"]
    here: str
    """The path of one topic or namespace."""
    policies: Callable[[AdminRequest], Awaitable[Any]]
    """Returns its record; raises an error if it does not exist."""
    change: Callable[..., Awaitable[None]]
    """Stores some fields of the record."""


def table(level: Level, levels: Levels) -> Table:
    """All paths of a level."""
    rows = _quotas(level)
    for policy, scope in levels.at(level.name):
        get, put, remove = handlers(level, policy, scope)
        for name in scope.paths:
            path = f"{level.here}/{name}"
            calls: tuple[tuple[str, AdminHandler], ...] = (
                ("GET", get), ("POST PUT", put), ("DELETE", remove)
            )  # fmt: skip
            rows += [(methods, path, call, Needs.TENANT_ADMIN) for methods, call in calls]
    return changing(rows)


def handlers(
    level: Level, policy: Policy, scope: Scope
) -> tuple[AdminHandler, AdminHandler, AdminHandler]:
    """Get, set and remove one policy."""
    by_cluster = policy.per_cluster and level.name == "namespace"

    async def get(request: AdminRequest) -> object:
        record = await level.policies(request)
        value = getattr(record, policy.name)
        if by_cluster:
            value = policy.of_cluster(value, request.broker.settings.cluster)
        if level.name == "topic" and request.flag("applied"):
            value = await _applied(request, policy, record)
        value = scope.unset if value is None else value
        return plain_text(value) if policy.plain and value is not None else value

    async def put(request: AdminRequest) -> None:
        value = await _sent(request, level, policy, scope)
        value = policy.absent if value is None else value
        value = checked(request, policy, scope, value)
        if value is not None and by_cluster:
            value = {request.broker.settings.cluster: value}
        await level.change(request, **{policy.name: scope.initial if value is None else value})

    async def remove(request: AdminRequest) -> None:
        await level.change(request, **{policy.name: scope.initial})

    return get, put, remove


async def _sent(request: AdminRequest, level: Level, policy: Policy, scope: Scope) -> Any:
    if policy.plain:
        return await request.words()
    for name in scope.paths if level.name == "topic" else ():
        if request.text(name):  # some tools send numeric policies of topics in the query
            return request.number(name, 0)
    if policy.kind in CONVERT:
        is_left_out = not (await request.body()).strip()
        if is_left_out and policy.name in BODY_OPTIONAL[level.name]:
            return None
        return await request.scalar(policy.kind)
    if isinstance(policy.kind, type) and issubclass(policy.kind, Struct):
        return await request.record(policy.kind)
    value = await request.value(policy.kind)
    return distinct(value) if isinstance(value, list) else value


async def _applied(request: AdminRequest, policy: Policy, record: Any) -> Any:
    """The value in force for a topic."""
    cluster = request.broker.settings.cluster
    namespace = await request.broker.catalog.policies(request.namespace)
    value = policy.decision(record, namespace, cluster)
    if value is not None or not policy.default_shown:
        return value
    default = getattr(request.broker.settings.defaults, policy.name, policy.default)
    return [cluster] if default is OWN_CLUSTER else policy.show(default)


# -- backlog quotas: one policy with two types -------------------------------------------------


def _quotas(level: Level) -> list[Row]:
    async def get(request: AdminRequest) -> object:
        decided = (await level.policies(request)).backlog_quotas
        if level.name == "namespace" or not request.flag("applied"):
            return decided
        none = BacklogQuota()  # tools expect both types: -1 is no limit
        found = (await request.broker.catalog.effective(request.topic)).backlog_quotas
        return {"destination_storage": none, "message_age": none, **found}

    async def put(request: AdminRequest) -> None:
        quota = await _sent_quota(request)
        if quota is None:
            await remove(request)
            return
        check_numbers("backlogQuota", quota)
        present = (await level.policies(request)).backlog_quotas
        await level.change(request, backlog_quotas={**present, quota_type(request): quota})

    async def remove(request: AdminRequest) -> None:
        present = dict((await level.policies(request)).backlog_quotas)
        present.pop(quota_type(request), None)
        await level.change(request, backlog_quotas=present)

    return [
        ("GET", f"{level.here}/backlogQuotaMap", get, Needs.TENANT_ADMIN),
        ("POST PUT", f"{level.here}/backlogQuota", put, Needs.TENANT_ADMIN),
        ("DELETE", f"{level.here}/backlogQuota", remove, Needs.TENANT_ADMIN),
    ]


async def _sent_quota(request: AdminRequest) -> BacklogQuota | None:
    """`null` removes the quota, and so does an empty body."""
    sent = await request.value(dict[str, Any])
    if sent is None:
        return None
    if sent.get("policy") is None:
        raise Invalid("backlog quota failed: the attribute policy cannot be null")
    return await request.json(BacklogQuota)


def quota_type(request: AdminRequest) -> QuotaType:
    """The quota type that the request names; by size if it names none."""
    for known in get_args(QuotaType):
        if known == request.text("backlogQuotaType", "destination_storage"):
            return known  # type: ignore[no-any-return]
    raise Invalid("backlogQuotaType must be destination_storage or message_age")
