"""Configs of topics, shown and changed; those of the broker, shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.errors import BrokerError, TopicNotFound
from core.names import TopicName
from core.policies import TopicPolicies
from wire.kafka import configs
from wire.kafka.configs import Config, Kind
from wire.kafka.errors import INVALID_CONFIG, INVALID_REQUEST, NONE, Refused, code_of
from wire.kafka.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    AlterResource,
    ChangeConfig,
    ChangeResource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
    DescribedSynonym,
    DescribeResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from wire.kafka.names import topic_of

if TYPE_CHECKING:
    from wire.kafka.front import KafkaFront
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import Asked

OF_TOPIC: Final = 2
OF_BROKER: Final = 4
FROM_TOPIC: Final = 1
FROM_SERVER: Final = 4
FROM_DEFAULT: Final = 5
SET, REMOVE, APPEND, SUBTRACT = range(4)

Configs = dict[str, str]


class Shown(NamedTuple):
    """One config as it is, and where that comes from."""

    name: str
    value: str
    source: int


def _shown(front: KafkaFront, own: Mapping[str, str], found: Mapping[str, str]) -> list[Shown]:
    def source(name: str) -> int:
        if name in own:
            return FROM_TOPIC
        return FROM_SERVER if name in front.defaults else FROM_DEFAULT

    return [Shown(name, value, source(name)) for name, value in sorted(found.items())]


def of_new_topic(front: KafkaFront, wanted: Mapping[str, str]) -> list[Shown]:
    """What a topic has that is made with these."""
    plain = {name: config.default for name, config in configs.TOPIC.items()}
    return _shown(front, wanted, {**plain, **front.defaults, **wanted})


# -- showing --------------------------------------------------------------------------------------


async def on_describe_configs(session: KafkaSession, asked: Asked) -> DescribeConfigsResponse:
    request = asked.request
    assert isinstance(request, DescribeConfigsRequest)
    return DescribeConfigsResponse(
        results=[await _described(session, request, one) for one in request.resources]
    )


async def _described(
    session: KafkaSession, request: DescribeConfigsRequest, resource: DescribeResource
) -> DescribedResource:
    told = DescribedResource(
        error_code=NONE,
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )
    keys = resource.configuration_keys
    try:
        if resource.resource_type == OF_TOPIC:
            found, table = await _of_topic(session, resource.resource_name), configs.TOPIC
        elif resource.resource_type == OF_BROKER:
            found, table = _of_broker(session, resource.resource_name), BROKER
        else:
            raise Refused(INVALID_REQUEST, f"Unsupported resource type: {resource.resource_type}")
    except (BrokerError, Refused) as error:
        told.error_code, told.error_message = code_of(error), str(error)
        return told
    told.configs = [
        _described_config(request, one, table[one.name], read_only=table is BROKER)
        for one in found
        if keys is None or one.name in keys
    ]
    return told


async def _of_topic(session: KafkaSession, text: str) -> list[Shown]:
    name = await _named(session, text)
    effective = await session.broker.catalog.effective(name)
    own = effective.configs
    return _shown(session.front, own, configs.shown(effective, session.front.defaults))


async def _named(session: KafkaSession, text: str) -> TopicName:
    name, broker = topic_of(text), session.broker
    if not await broker.catalog.partitions(name) and not await broker.exists(name):
        raise TopicNotFound(f"topic {text} does not exist")
    return name


def _described_config(
    request: DescribeConfigsRequest, shown: Shown, config: Config, *, read_only: bool
) -> DescribedConfig:
    synonyms = []
    if request.include_synonyms:
        synonyms.append(DescribedSynonym(name=shown.name, value=shown.value, source=shown.source))
        if shown.source != FROM_DEFAULT:
            default = config.default
            synonyms.append(DescribedSynonym(name=shown.name, value=default, source=FROM_DEFAULT))
    return DescribedConfig(
        name=shown.name,
        value=shown.value,
        read_only=read_only,
        config_source=shown.source,
        is_sensitive=False,
        synonyms=synonyms,
        config_type=config.kind,
        documentation=config.documentation if request.include_documentation else None,
    )


# -- the broker -----------------------------------------------------------------------------------


def _broker_row(name: str, kind: Kind, documentation: str) -> tuple[str, Config]:
    return name, Config(name, kind, "", str, documentation)


BROKER: Final[Mapping[str, Config]] = dict(
    (
        _broker_row("broker.id", Kind.INT, "Number of this one broker."),
        _broker_row("advertised.listeners", Kind.STRING, "Where clients are told to connect."),
        _broker_row("auto.create.topics.enable", Kind.BOOLEAN, "Topics come by being named."),
        _broker_row("num.partitions", Kind.INT, "Of a topic that comes so."),
        _broker_row("default.replication.factor", Kind.INT, "There is one broker."),
        _broker_row("min.insync.replicas", Kind.INT, "There is one broker."),
        _broker_row("message.max.bytes", Kind.INT, "Largest batch taken."),
        _broker_row("log.retention.ms", Kind.LONG, "Older records go."),
        _broker_row("log.cleanup.policy", Kind.LIST, "What ends a log."),
        _broker_row("log.message.timestamp.type", Kind.STRING, "Whose clock a time is."),
        _broker_row("delete.topic.enable", Kind.BOOLEAN, "Topics can be deleted."),
    )
)


def _of_broker(session: KafkaSession, name: str) -> list[Shown]:
    front, options = session.front, session.front.options
    if name not in ("", str(options.node_id)):
        raise Refused(
            INVALID_REQUEST,
            f"Unexpected broker id, expected {options.node_id}, but received {name}",
        )
    host, port = session.address
    creation = session.broker.settings.defaults.auto_topic_creation
    values = {
        "broker.id": str(options.node_id),
        "advertised.listeners": f"PLAINTEXT://{host}:{port}",
        "auto.create.topics.enable": str(creation.allowed).lower(),
        "num.partitions": str(options.partitions),
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        "message.max.bytes": front.defaults[configs.MAX_MESSAGE_BYTES],
        "log.retention.ms": front.defaults[configs.RETENTION_MS],
        "log.cleanup.policy": "delete",
        "log.message.timestamp.type": configs.CREATE_TIME,
        "delete.topic.enable": "true",
    }
    return [Shown(name, values[name], FROM_SERVER) for name in BROKER]


# -- changing -------------------------------------------------------------------------------------


async def on_alter_configs(session: KafkaSession, asked: Asked) -> AlterConfigsResponse:
    """All of a topic's configs anew: what is not named goes back to its default."""
    request = asked.request
    assert isinstance(request, AlterConfigsRequest)

    def anew(resource: AlterResource) -> Callable[[Configs], Configs]:
        wanted = {one.name: one.value for one in resource.configs}
        return lambda _: {name: configs.check(name, value) for name, value in wanted.items()}

    return AlterConfigsResponse(
        responses=await _altered(session, request.resources, anew, request.validate_only)
    )


async def on_incremental_alter_configs(
    session: KafkaSession, asked: Asked
) -> IncrementalAlterConfigsResponse:
    """Some of a topic's configs: the others stay."""
    request = asked.request
    assert isinstance(request, IncrementalAlterConfigsRequest)

    def changed(resource: ChangeResource) -> Callable[[Configs], Configs]:
        return lambda own: _changed(own, resource.configs)

    return IncrementalAlterConfigsResponse(
        responses=await _altered(session, request.resources, changed, request.validate_only)
    )


async def _altered(
    session: KafkaSession,
    resources: Sequence[Any],
    change_of: Callable[[Any], Callable[[Configs], Configs]],
    validate_only: bool,
) -> list[AlteredResource]:
    told = []
    for resource in resources:
        code, message = NONE, None
        try:
            if resource.resource_type != OF_TOPIC:
                raise Refused(INVALID_REQUEST, "only topics are configured by clients")
            name = await _named(session, resource.resource_name)
            await _change(session, name, change_of(resource), for_real=not validate_only)
        except (BrokerError, Refused) as error:
            code, message = code_of(error), str(error)
        told.append(
            AlteredResource(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return told


async def _change(
    session: KafkaSession, name: TopicName, change: Callable[[Configs], Configs], *, for_real: bool
) -> None:
    catalog = session.broker.catalog
    async with catalog.changing(name.namespace):
        decided: TopicPolicies = await catalog.topic_policies(name)
        wanted = change(dict(decided.configs))
        if for_real:
            applied = configs.applied(decided, wanted, session.front.defaults)
            await catalog.set_topic_policies(name, applied)
    session.broker.policies_changed(name.namespace)


def _changed(own: Configs, changes: Sequence[ChangeConfig]) -> Configs:
    names = [change.name for change in changes]
    if len(set(names)) != len(names):
        raise Refused(INVALID_REQUEST, "Error due to duplicate config keys")
    for change in changes:
        name, operation = change.name, change.config_operation
        if operation == REMOVE:
            if name not in configs.TOPIC:
                raise Refused(INVALID_CONFIG, f"Unknown topic config name: {name}")
            own.pop(name, None)
        elif operation == SET:
            own[name] = configs.check(name, change.value)
        elif operation in (APPEND, SUBTRACT):
            own[name] = configs.check(name, _relisted(own, name, change.value or "", operation))
        else:
            raise Refused(INVALID_REQUEST, f"Unknown operation type {operation}")
    return own


def _relisted(own: Configs, name: str, value: str, operation: int) -> str:
    """A list with something more in it, or less."""
    config = configs.TOPIC.get(name)
    if config is None or config.kind is not Kind.LIST:
        raise Refused(INVALID_CONFIG, f"Config value append is not allowed for config key: {name}")
    present = [one for one in own.get(name, config.default).split(",") if one]
    told = value.split(",")
    if operation == SUBTRACT:
        return ",".join(one for one in present if one not in told)
    return ",".join(present + [one for one in told if one not in present])


Handler = Callable[["KafkaSession", "Asked"], Awaitable[Any]]
HANDLERS: Final[Mapping[int, Handler]] = {
    32: on_describe_configs,
    33: on_alter_configs,
    44: on_incremental_alter_configs,
}
