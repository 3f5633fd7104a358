"""The resources that have configs: topics, this broker, and groups; their values and changes.

`wire/kafka/configs.py` and `wire/kafka/groups/configs.py` have the tables of configs, and
`session/configs/configs.py` the requests. Configs of groups are those of KIP-848, broker configs
those of KIP-226.

Invariant: a refused change has changed nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from magnetar.core.broker import administration
from magnetar.core.kernel.errors import TopicNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.policies import TopicPolicies
from magnetar.wire.kafka import configs
from magnetar.wire.kafka.configs import Config, ConfigType
from magnetar.wire.kafka.errors import INVALID_REQUEST, KafkaRefusal
from magnetar.wire.kafka.groups.configs import GROUP, of_all
from magnetar.wire.kafka.messages.configs import ConfigResourceType
from magnetar.wire.kafka.names import topic_of
from magnetar.wire.kafka.session.shown_configs import (
    FROM_DEFAULT,
    FROM_GROUP,
    FROM_SERVER,
    Shown,
    of_new_topic,
    shown_topic,
)
from magnetar.wire.kafka.session.topics import internal
from magnetar.wire.kafka.session.topics.creation import is_there
from magnetar.wire.kafka.session.topics.metadata import all_names

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
    from magnetar.wire.kafka.groups.group_configs import GroupConfigs
    from magnetar.wire.kafka.groups.group_records import GroupRecords
    from magnetar.wire.kafka.options import KafkaOptions
    from magnetar.wire.kafka.session.context import Caller

Configs = dict[str, str]
Change = Callable[[Configs], Configs]
"""Returns the new configs of a resource, from its present ones."""


class Resource(NamedTuple):
    """One kind of thing that has configs."""

    kind: str
    table: Mapping[str, Config]
    show: Callable[[Caller, str], Awaitable[list[Shown]]]
    change: Callable[[str, Change, bool], Awaitable[None]]
    """The last argument is False for `validate_only`."""
    names: Callable[[], Awaitable[list[str]]]
    """Lists the resources of the kind; of groups, those that have configs of their own."""
    fixed: frozenset[str] = frozenset()
    """Read-only configs."""


class ConfigResources:
    """Topics, this broker and groups: how their configs are shown and changed."""

    def __init__(
        self,
        broker: Broker,
        groups: GroupCoordinator,
        records: GroupRecords,
        group_configs: GroupConfigs,
        options: KafkaOptions,
        defaults: Mapping[str, str],
    ) -> None:
        self._broker = broker
        self._groups = groups
        self._records = records
        self._group_configs = group_configs
        self._options = options
        self._defaults = defaults
        topic, node, group = (
            Resource("topic", configs.TOPIC, self._of_topic, self._change_topic, self._topics),
            Resource("broker", BROKER, self._of_broker, self._change_broker, self._brokers, FIXED),
            Resource("group", GROUP, self._of_group, self._change_group, self._groups_with_configs),
        )
        self.by_type: Mapping[int, Resource] = {
            ConfigResourceType.TOPIC: topic,
            ConfigResourceType.BROKER: node,
            ConfigResourceType.GROUP: group,
        }

    async def _topics(self) -> list[str]:
        return await all_names(self._broker, self._records)

    async def _of_topic(self, _caller: Caller, text: str) -> list[Shown]:
        if internal.is_meant(text):
            await internal.check_is_there(self._records)
            return of_new_topic(self._defaults, internal.CONFIGS)
        name = await self._named(text)
        effective = await self._broker.catalog.effective(name)
        own = effective.configs
        return shown_topic(self._defaults, own, configs.shown(effective, self._defaults))

    async def _named(self, text: str) -> TopicName:
        name = topic_of(text)
        if not await is_there(self._broker, name):
            raise TopicNotFound(f"topic {text} does not exist")
        return name

    async def _change_topic(self, text: str, change: Change, for_real: bool) -> None:
        internal.refuse_change(text)
        name = await self._named(text)
        catalog = self._broker.catalog
        async with catalog.changing(name.namespace):
            decided: TopicPolicies = await catalog.topic_policies(name)
            requested = change(dict(decided.configs))
            configs.check_together(requested)
            if for_real:
                applied = configs.applied(decided, requested, self._defaults)
                await administration.set_topic_policies(self._broker, name, applied)
        await self._broker.apply_policies(name.namespace)

    async def _of_broker(self, caller: Caller, name: str) -> list[Shown]:
        self._check_broker(name)
        options = self._options
        host, port = caller.endpoint
        creation = self._broker.settings.defaults.auto_topic_creation
        values = {
            "broker.id": str(options.node_id),
            "advertised.listeners": f"PLAINTEXT://{host}:{port}",
            "auto.create.topics.enable": str(creation.allowed).lower(),
            "num.partitions": str(options.partitions),
            "default.replication.factor": "1",
            "min.insync.replicas": "1",
            "message.max.bytes": self._defaults[configs.MAX_MESSAGE_BYTES],
            "log.retention.ms": self._defaults[configs.RETENTION_MS],
            "log.cleanup.policy": "delete",
            "log.message.timestamp.type": configs.CREATE_TIME,
            "delete.topic.enable": "true",
            "log.dirs": options.data_dir,
            "offsets.topic.num.partitions": str(internal.PARTITIONS),
            "offsets.topic.replication.factor": "1",
        }
        known = [Shown(name, values[name], FROM_SERVER) for name in BROKER if name in values]
        return known + [Shown(name, UNTHROTTLED, FROM_DEFAULT) for name in sorted(THROTTLES)]

    async def _change_broker(self, name: str, change: Change, _for_real: bool) -> None:
        """Accept the removal of throttles, which are never set; refuse every other change."""
        self._check_broker(name)
        before = dict.fromkeys(FIXED, "")
        after = change(dict(before))
        touched = sorted({one for one in {*before, *after} if before.get(one) != after.get(one)})
        if touched:
            raise KafkaRefusal(
                INVALID_REQUEST, f"Cannot update these configs dynamically: {', '.join(touched)}"
            )

    def _check_broker(self, name: str) -> None:
        node = self._options.node_id
        if name not in ("", str(node)):
            raise KafkaRefusal(
                INVALID_REQUEST, f"Unexpected broker id, expected {node}, but received {name}"
            )

    async def _brokers(self) -> list[str]:
        return [str(self._options.node_id)]

    async def _of_group(self, _caller: Caller, name: str) -> list[Shown]:
        """The configs of a group, which may be set before the group exists (KIP-848)."""
        _check_group(name)
        group_configs = self._group_configs
        own, common = group_configs.of(name), of_all(group_configs.options)

        def shown(one: Config) -> Shown:
            if one.name in own:
                return Shown(one.name, own[one.name], FROM_GROUP)
            value = common[one.name]
            return Shown(one.name, value, FROM_DEFAULT if value == one.default else FROM_SERVER)

        return sorted(map(shown, GROUP.values()))

    async def _change_group(self, name: str, change: Change, for_real: bool) -> None:
        _check_group(name)
        await self._group_configs.change(name, change, for_real=for_real)
        self._groups.retime(name)

    async def _groups_with_configs(self) -> list[str]:
        return self._group_configs.names()


THROTTLES: Final = frozenset(
    (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
"""`kafka-reassign-partitions.sh` removes them after a reassignment (KIP-73, KIP-455)."""
UNTHROTTLED: Final = str(configs.INT64_MAX)


def _broker_row(name: str, kind: ConfigType, documentation: str) -> tuple[str, Config]:
    return name, Config(name, kind, "", str, documentation)


BROKER: Final[Mapping[str, Config]] = dict(
    (
        _broker_row("broker.id", ConfigType.INT, "Number of this one broker."),
        _broker_row("advertised.listeners", ConfigType.STRING, "Where clients are to connect."),
        _broker_row("auto.create.topics.enable", ConfigType.BOOLEAN, "Metadata creates topics."),
        _broker_row("num.partitions", ConfigType.INT, "Partitions of such a topic."),
        _broker_row("default.replication.factor", ConfigType.INT, "There is one broker."),
        _broker_row("min.insync.replicas", ConfigType.INT, "There is one broker."),
        _broker_row("message.max.bytes", ConfigType.INT, "The largest batch accepted."),
        _broker_row("log.retention.ms", ConfigType.LONG, "Older records are deleted."),
        _broker_row("log.cleanup.policy", ConfigType.LIST, "How logs are trimmed."),
        _broker_row("log.message.timestamp.type", ConfigType.STRING, "The source of timestamps."),
        _broker_row("delete.topic.enable", ConfigType.BOOLEAN, "Topics can be deleted."),
        _broker_row("log.dirs", ConfigType.STRING, "Where partitions are."),
        _broker_row("offsets.topic.num.partitions", ConfigType.INT, "Shown, but not used."),
        _broker_row("offsets.topic.replication.factor", ConfigType.INT, "There is one broker."),
        *(_broker_row(name, ConfigType.LONG, "Nothing is moved here.") for name in THROTTLES),
    )
)
FIXED: Final = frozenset(BROKER) - THROTTLES


def _check_group(name: str) -> None:
    if not name:
        raise KafkaRefusal(
            INVALID_REQUEST, "a group has a name; there are no configs of all groups"
        )
