"""The one-to-one mapping of MQTT topics to topics, by the names of Pulsar's gateway, MoP. Pure.

    sensors/1/temp                            public/default/sensors%2F1%2Ftemp
    persistent://tenant/ns/sensors/1/temp     tenant/ns/sensors%2F1%2Ftemp

The encoding is that of `java.net.URLEncoder`, as in MoP's `PulsarTopicUtils` (5.0): a space becomes
`+`, `*` stays. So consumers written for MoP find the same topics here.

Invariant: `mqtt_topic` is the inverse of `topic_name`, and None for names that this never returns
(`a~b`), which MQTT cannot address.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote_plus, unquote_plus

from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import DOMAINS, NamespaceName, TopicName

_PREFIXES: Final = tuple(f"{domain}://" for domain in DOMAINS)
PUBLISHER_BYTES_MAX: Final = 65_535
"""What a run has room for; a client id alone may be as long (1.5.4)."""


def encoded(text: str) -> str:
    return quote_plus(text, safe="*").replace("~", "%7E")


def topic_name(topic: str, namespace: NamespaceName) -> TopicName:
    """The topic of an MQTT topic, which may name another namespace; raises `InvalidName`."""
    domain, place, local = DOMAINS[0], str(namespace), topic
    if topic.startswith(_PREFIXES):
        domain, _, rest = topic.partition("://")
        tenant, _, rest = rest.partition("/")
        name, _, local = rest.partition("/")
        place = f"{tenant}/{name}"
    if not local:
        raise InvalidName(f"{topic!r} names no topic")
    return TopicName.parse(f"{domain}://{place}/{encoded(local)}")


def mqtt_topic(name: TopicName, namespace: NamespaceName) -> str | None:
    """The MQTT topic of a topic; short in the namespace of the listener."""
    try:
        local = unquote_plus(name.local, errors="strict")
    except UnicodeDecodeError:
        return None
    if encoded(local) != name.local:
        return None
    short = name.persistent and name.namespace == namespace
    if short and not local.startswith(_PREFIXES):
        return local
    return f"{name.domain}://{name.namespace}/{local}"


def full_topic(name: TopicName) -> str:
    """The MQTT topic that names the namespace, for a topic that `mqtt_topic` can address."""
    return f"{name.domain}://{name.namespace}/{unquote_plus(name.local)}"


def publisher_prefix(log: TopicName, namespace: NamespaceName) -> bytes:
    """What comes before the client ids of a listener's clients in the runs of a log: nothing in
    their own namespace, whose listener has client ids of its own. No client id holds the NUL
    [MQTT-1.5.4-2], so the clients of two listeners cannot be confused.
    """
    return b"" if log.namespace == namespace else f"{namespace}\0".encode()


def publisher(prefix: bytes, client_id: str) -> bytes:
    """The publisher of a run, as the run names it."""
    return (prefix + client_id.encode())[:PUBLISHER_BYTES_MAX]


def is_explicit(topic: str) -> bool:
    """Whether an MQTT topic names its namespace, so that no rule applies to it."""
    return topic.startswith(_PREFIXES)


def namespace_of(filter: str, namespace: NamespaceName) -> NamespaceName:
    """The namespace whose topics a filter may match: the one it names, else the listener's.

    A wildcard in the name of a namespace is not supported, as in MoP; raises `InvalidName`.
    """
    if not is_explicit(filter):
        return namespace
    tenant, _, rest = filter.partition("://")[2].partition("/")
    return NamespaceName.parse(f"{tenant}/{rest.partition('/')[0]}")
