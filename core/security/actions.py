"""What may be done, and with what. Pure.

The numbers are Kafka's codes (`AclOperation.java` and `ResourceType.java` of 4.3), which ACLs are
stored and sent with; those from 100 on are Pulsar's, and no ACL names them.
"""

from __future__ import annotations

import enum


class Action(enum.IntEnum):
    """An operation on a resource."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    FUNCTIONS = 100
    SOURCES = 101
    SINKS = 102
    PACKAGES = 103

    @property
    def words(self) -> str:
        return self.name.lower().replace("_", " ")


class ResourceType(enum.IntEnum):
    """The kind of resource."""

    TOPIC = 2
    """Named in full: `persistent://tenant/namespace/topic`, without the number of a partition."""
    GROUP = 3
    CLUSTER = 4
    TRANSACTION = 5
    TOKEN = 6
    USER = 7
    SUBSCRIPTION = 100
    """Named by `subscription_of`, since it belongs to its topic: its rights include those of the
    topic."""
    NAMESPACE = 101
    TENANT = 102
    SERVER = 103
    """The server itself, over HTTP: for superusers."""

    @property
    def words(self) -> str:
        return self.name.lower()


CLUSTER_NAME = "kafka-cluster"
"""The only resource of its kind (`Resource.CLUSTER_NAME` of Kafka)."""


def subscription_of(topic: str, subscription: str) -> str:
    """The name of a subscription as a resource. Names of topics may have any letters, so the length
    of the topic's says where that of the subscription begins.
    """
    return f"{topic}|{subscription}|{len(topic)}"


def parts_of_subscription(name: str) -> tuple[str, str]:
    """Topic and subscription of `subscription_of`."""
    rest, _, size = name.rpartition("|")
    return rest[: int(size)], rest[int(size) + 1 :]


def shown(kind: ResourceType, name: str) -> str:
    """A resource in a sentence."""
    if kind is ResourceType.SUBSCRIPTION:
        topic, subscription = parts_of_subscription(name)
        return f"subscription {subscription} of {topic}"
    return f"{kind.words} {name}".rstrip()
