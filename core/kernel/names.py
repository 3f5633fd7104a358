"""Names of tenants, namespaces, topics and subscriptions, and their rules. Pure.

`persistent://tenant/namespace/local` is the canonical name of a topic; short forms are read and
never written. Partition i of a topic is itself a topic, named `<name>-partition-<i>`. The rules are
Pulsar's (`TopicName.java` and `NamedEntity.java` of 4.2).

Invariant: every `TopicName` and `NamespaceName` is valid; invalid text raises `InvalidName` with a
sentence for its user. Whether a topic exists is not known here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote_plus, unquote_plus

from msgspec import Struct

from magnetar.core.kernel.errors import InvalidName

PERSISTENT: Final = "persistent"
NON_PERSISTENT: Final = "non-persistent"
DOMAINS: Final = (PERSISTENT, NON_PERSISTENT)
DEFAULT_NAMESPACE: Final = "public/default"
SYSTEM_NAMESPACE: Final = "pulsar/system"
"""The namespace of the server's own topics."""
MANAGED_LEDGERS: Final = "/managed-ledgers"
"""The path below which the metadata store has the logs of all topics, as Pulsar's has."""
VIEWS: Final = frozenset({"__consumer_offsets"})
"""Names in the default namespace by which clients are shown something that is no topic. Kafka's may
not write to it either (`Topic.INTERNAL_TOPICS` of 4.3).
"""
KEPT_WITH_NAMESPACE: Final = frozenset(
    {
        "__change_events",
        "__transaction_buffer_snapshot",
        "__transaction_buffer_snapshot_indexes",
        "__transaction_buffer_snapshot_segments",
    }
)
"""Topics that Pulsar's brokers keep in each namespace, which are no contents of it
(`SystemTopicNames.java` of 4.2).
"""

NAME_BYTES_MAX: Final = 4096
"""Longer names are refused, because names are stored, listed and sent whole."""
NAMES_CACHED_MAX: Final = 16_384
"""Parsed names in the cache."""

RESERVED_SUBSCRIPTIONS: Final = frozenset({"pulsar.dedup", "__compaction"})
RESERVED_SUBSCRIPTION_PREFIX: Final = "pulsar.repl."

_ENTITY = re.compile(r"[-=:.\w]+", re.ASCII)
# no leading zeros: `-partition-01` is an ordinary name, as only one spelling may mean a partition
_PARTITION = re.compile(r"(.+)-partition-(0|[1-9][0-9]{0,8})", re.DOTALL)
_NO_PARTITION: Final = -1


class NamespaceName(Struct, frozen=True, cache_hash=True):
    """`tenant/local`."""

    tenant: str
    local: str

    @staticmethod
    def parse(text: str) -> NamespaceName:
        """Read `tenant/namespace`."""
        return _parse_namespace(text)

    def __str__(self) -> str:
        return f"{self.tenant}/{self.local}"

    @property
    def managed_ledgers(self) -> str:
        """The path below which the metadata store has its persistent topics."""
        return f"{MANAGED_LEDGERS}/{self}/{PERSISTENT}"


def partition_name(topic: str, index: int) -> str:
    """The full name of a partition, by that of its topic, where thousands need not be parsed."""
    return f"{topic}-partition-{index}"


def partition_of(full: str) -> tuple[str, int]:
    """The topic of a partition and its index, by its full name; itself and -1 if it is none."""
    found = _PARTITION.fullmatch(full)
    if found is None or found[1].endswith("/"):  # "-partition-3" is a name
        return full, _NO_PARTITION
    return found[1], int(found[2])


class TopicName(Struct, frozen=True, cache_hash=True):
    """One topic, or one partition of one. Made by `parse`."""

    full: str
    """The canonical spelling."""
    domain: str
    namespace: NamespaceName
    local: str
    """The last part, with its partition suffix."""
    partition_index: int
    """-1 if it is not the name of a partition."""

    @staticmethod
    def parse(text: str) -> TopicName:
        """Read a full name, `tenant/namespace/local`, or a local name of `public/default`."""
        return _parse_topic(text)

    @staticmethod
    def of_managed_ledger(name: str) -> TopicName:
        """The topic whose `managed_ledger` is `name`."""
        parts = name.split("/")
        if len(parts) != 4:
            raise InvalidName(f"{name!r} is not the name of a topic's managed ledger")
        tenant, namespace, domain, local = parts
        return _parse_topic(f"{domain}://{tenant}/{namespace}/{unquote_plus(local)}")

    def __str__(self) -> str:
        return self.full

    @property
    def tenant(self) -> str:
        return self.namespace.tenant

    @property
    def persistent(self) -> bool:
        return self.domain == PERSISTENT

    @property
    def partitioned(self) -> bool:
        """Whether this is one partition of a partitioned topic."""
        return self.partition_index >= 0

    @property
    def base(self) -> TopicName:
        """The topic of which this is a partition; itself if it is none."""
        if self.partition_index < 0:
            return self
        return _parse_topic(self.full[: self.full.rindex("-partition-")])

    @property
    def shortest(self) -> str:
        """The name of a persistent topic without what may be left out."""
        namespace = str(self.namespace)
        return self.local if namespace == DEFAULT_NAMESPACE else f"{namespace}/{self.local}"

    def partition(self, index: int) -> TopicName:
        """The topic that is partition `index` of this one."""
        if self.partition_index >= 0:
            raise InvalidName(f"{self.full} is a partition and has no partitions of its own")
        return _parse_topic(partition_name(self.full, index))

    @property
    def system(self) -> bool:
        """Whether it is reserved for the broker, and not listed."""
        return self.local.startswith("__")

    @property
    def internal(self) -> bool:
        """Whether this server stores its own state there, or shows something by that name, so that
        others may only read it.

        Pulsar's brokers have topics with reserved names in namespaces of users, too; those are not
        of this server.
        """
        if not self.system or not self.persistent:
            return False
        namespace = str(self.namespace)
        if namespace == DEFAULT_NAMESPACE:
            return self.base.local in VIEWS
        return namespace == SYSTEM_NAMESPACE

    @property
    def encoded_local(self) -> str:
        """The local name as one part of a metadata path."""
        # as java.net.URLEncoder encodes it (`Codec.encode` of Pulsar): others use the same path
        return quote_plus(self.local, safe="*").replace("~", "%7E")

    @property
    def managed_ledger(self) -> str:
        """The path of its managed ledger below `MANAGED_LEDGERS`."""
        return f"{self.namespace}/{self.domain}/{self.encoded_local}"


def check_entity(kind: str, name: str) -> None:
    """Raise unless `name` is valid for a tenant, namespace or cluster; `kind` is for the text."""
    if not name:
        raise InvalidName(f"the name of a {kind} must not be empty")
    if len(name) > NAME_BYTES_MAX:
        raise InvalidName(f"the name of a {kind} may have at most {NAME_BYTES_MAX} characters")
    if not _ENTITY.fullmatch(name) or name in (".", ".."):
        raise InvalidName(
            f"{name!r} cannot name a {kind}: use letters, digits and the characters - = : . _"
        )


def check_length(kind: str, name: str) -> None:
    """Raise if a name that clients choose is too long; `kind` is for the text."""
    if _utf8_length(name) > NAME_BYTES_MAX:
        raise InvalidName(f"the name of a {kind} may have at most {NAME_BYTES_MAX} bytes")


def check_subscription(name: str) -> None:
    """Raise unless users may create a subscription with that name."""
    if not name:
        raise InvalidName("the name of a subscription must not be empty")
    check_length("subscription", name)
    if name in (".", ".."):
        raise InvalidName(f"{name!r} cannot name a subscription")
    if name in RESERVED_SUBSCRIPTIONS or name.startswith(RESERVED_SUBSCRIPTION_PREFIX):
        raise InvalidName(f"the subscription name {name} is reserved for the broker")


@lru_cache(NAMES_CACHED_MAX)
def _parse_namespace(text: str) -> NamespaceName:
    tenant, slash, local = text.partition("/")
    if not slash:
        raise InvalidName(f"{text!r} is not a namespace: expected tenant/namespace")
    check_entity("tenant", tenant)
    check_entity("namespace", local)
    return NamespaceName(tenant, local)


@lru_cache(NAMES_CACHED_MAX)
def _parse_topic(text: str) -> TopicName:
    # before anything is built from it, and before a bad one could be quoted back at length
    if _utf8_length(text) > NAME_BYTES_MAX:
        raise InvalidName(f"the name of a topic may have at most {NAME_BYTES_MAX} bytes")
    domain, namespace, local = _parts(text)
    if domain not in DOMAINS:
        raise InvalidName(
            f"{text!r} is not a topic: it must begin with persistent:// or non-persistent://"
        )
    if not local or local in (".", ".."):
        raise InvalidName(f"{text!r} is not a topic: the part after the namespace is missing")
    found = _PARTITION.fullmatch(local)
    return TopicName(
        full=f"{domain}://{namespace}/{local}",
        domain=domain,
        namespace=_parse_namespace(namespace),
        local=local,
        partition_index=int(found[2]) if found else _NO_PARTITION,
    )


def _parts(text: str) -> tuple[str, str, str]:
    """Split a name into domain, namespace and local name."""
    domain, scheme, rest = text.partition("://")
    if not scheme:
        domain, rest = PERSISTENT, text
        if "/" not in rest:
            return domain, DEFAULT_NAMESPACE, rest
    steps = rest.split("/")
    if len(steps) != 3:
        raise InvalidName(
            f"{text!r} is not a topic: expected [persistent://]tenant/namespace/topic, or a name"
            " without slashes"
        )
    return domain, f"{steps[0]}/{steps[1]}", steps[2]


def _utf8_length(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidName("a name must be text that UTF-8 can spell") from error
