"""Levels of subjects: the strategies of topics and namespaces, under the names that serializers'
registries have for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.values import SchemaStrategy, schema_strategy
from magnetar.core.schema.records import Named, Subject
from magnetar.core.schema.subjects import HOME, named, namespace_of
from magnetar.wire.http.admin.schemas.subject_schemas import (
    LEVEL_INVALID,
    LEVEL_MISSING,
    SUBJECT_MISSING,
    Answer,
    Problem,
    subject,
)
from magnetar.wire.http.request import AdminRequest

NONE: Final = "NONE"
LEVELS: Final[Mapping[str, SchemaStrategy]] = {
    NONE: SchemaStrategy.ALWAYS_COMPATIBLE,
    **{
        each.value: each
        for each in SchemaStrategy
        if each.value.startswith(("BACKWARD", "FORWARD", "FULL"))
    },
}
POLICY: Final = "schema_compatibility_strategy"
ADDING: Final = "is_allow_auto_update_schema"


class SentLevel(Struct, frozen=True):
    """A level as tools send it."""

    compatibility: str = ""


async def level(request: AdminRequest, name: Named) -> SchemaStrategy:
    """What a new version of the subject must have in common with those before it."""
    return schema_strategy(await _decision(request, name, POLICY)) or SchemaStrategy.BACKWARD


async def may_add(request: AdminRequest, name: Named) -> bool:
    """Whether clients may add versions to the subject."""
    decided: bool | None = await _decision(request, name, ADDING)
    if decided is None:
        return request.broker.catalog.defaults.is_allow_auto_update_schema
    return decided


async def _decision(request: AdminRequest, name: Named, policy_name: str) -> Any:
    """What the topic or its namespace has decided; None for nothing."""
    catalog = request.broker.catalog
    own = await own_level(request, name) if policy_name == POLICY else None
    if own is not None:
        return own.value
    namespace = await catalog.policies(namespace_of(name))
    topic = await catalog.topic_policies(name) if isinstance(name, TopicName) else None
    policy = next(each for each in catalog.levels.policies if each.name == policy_name)
    return policy.decision(topic or catalog.levels.topic(), namespace, catalog.cluster)


async def own_level(request: AdminRequest, name: Named) -> SchemaStrategy | None:
    """What has been decided for the subject itself."""
    if isinstance(name, Subject):
        return schema_strategy((await request.broker.schemas.versions(name)).strategy)
    policies = await request.broker.catalog.topic_policies(name)
    return schema_strategy(policies.schema_compatibility_strategy)


def level_name(rule: SchemaStrategy) -> str:
    """Its name in such a registry, which has none for what nothing may follow."""
    return next((each for each in LEVELS if LEVELS[each] is rule), "FULL_TRANSITIVE")


async def get_level(request: AdminRequest) -> Answer:
    return {"compatibilityLevel": level_name(await level(request, named("-")))}


async def get_level_of(request: AdminRequest) -> Answer:
    name = subject(request)
    own = await own_level(request, name)
    if own is None and not request.flag("defaultToGlobal"):
        text = request.part("subject")
        raise Problem(LEVEL_MISSING, f"Subject '{text}' does not have subject-level compatibility")
    return {"compatibilityLevel": level_name(own or await level(request, name))}


async def _sent_level(request: AdminRequest) -> tuple[str, SchemaStrategy]:
    text = (await request.json(SentLevel)).compatibility.upper()
    if text not in LEVELS:
        raise Problem(LEVEL_INVALID, f"Invalid compatibility level: one of {', '.join(LEVELS)}")
    return text, LEVELS[text]


async def set_level(request: AdminRequest) -> Answer:
    """Of the default namespace: for subjects of its topics, and for those of no topic."""
    text, rule = await _sent_level(request)
    broker = request.broker
    async with broker.catalog.changing(HOME):
        policies = await broker.catalog.policies(HOME)
        changed = msgspec.structs.replace(policies, **{POLICY: rule.value})
        await broker.catalog.set_policies(HOME, changed)
    await broker.apply_policies(HOME)
    return {"compatibility": text}


async def remove_level(request: AdminRequest) -> Answer:
    """Forget what was decided for the default namespace; answer what that was."""
    before, catalog = await get_level(request), request.broker.catalog
    async with catalog.changing(HOME):
        policies = await catalog.policies(HOME)
        unset = getattr(catalog.levels.namespace(), POLICY)
        await catalog.set_policies(HOME, msgspec.structs.replace(policies, **{POLICY: unset}))
    await request.broker.apply_policies(HOME)
    return before


async def set_level_of(request: AdminRequest) -> Answer:
    text, rule = await _sent_level(request)
    await _decide(request, rule)
    return {"compatibility": text}


async def remove_level_of(request: AdminRequest) -> Answer:
    """Forget what was decided for the subject itself; answer what that was."""
    own = await own_level(request, subject(request))
    if own is None:
        raise Problem(SUBJECT_MISSING, f"Subject '{request.part('subject')}' not found.")
    await _decide(request, None)
    return {"compatibilityLevel": level_name(own)}


async def _decide(request: AdminRequest, rule: SchemaStrategy | None) -> None:
    name, broker = subject(request), request.broker
    if isinstance(name, Subject):
        await broker.schemas.decide(name, rule)
        return
    value = None if rule is None else rule.value
    async with broker.catalog.changing(name.namespace):
        policies = await broker.catalog.topic_policies(name)
        changed = msgspec.structs.replace(policies, **{POLICY: value})
        await broker.catalog.set_topic_policies(name, changed)
    await broker.apply_policies(name.namespace)
