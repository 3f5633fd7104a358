"""What a WebSocket is opened for: the path, the query and the credentials of its request. Pure.

    /ws/v2/producer/DOMAIN/TENANT/NAMESPACE/TOPIC           /ws/producer/DOMAIN/TENANT/CLUSTER/...
    /ws/v2/consumer/DOMAIN/TENANT/NAMESPACE/TOPIC/SUBSCRIPTION
    /ws/v2/reader/DOMAIN/TENANT/NAMESPACE/TOPIC
    /ws/v3/consumer/SUBSCRIPTION?topics=NAME,NAME           of several topics
    /ws/v3/consumer/SUBSCRIPTION?topicsPattern=NAME         of those whose names match

No topic has a slash in its name, encoded or not; a subscription may have encoded ones. Empty steps
of a topic are left out. The paths without a version are those of names with a cluster (V1), which
are gone; the cluster is dropped from them, so an old application finds its topic in the namespace
without it.

Invariant: a request that no endpoint can be made of raises `RefusedRequest`, before anything is
done.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final
from urllib.parse import parse_qsl, unquote

from msgspec import Struct

from magnetar.core.broker.topic_watches import watchable
from magnetar.core.kernel.errors import Invalid, InvalidName
from magnetar.core.kernel.names import DOMAINS, TopicName, check_subscription
from magnetar.wire.pulsar import commands_pb2 as pb

PREFIX: Final = "/ws/"
SEVERAL: Final = "/ws/v3/consumer/"
TOPICS_MAX: Final = 1_000
"""Of a consumer of several."""
FIELDS_MAX: Final = 100
"""Parameters of a query."""
QUEUE_MAX: Final = 1_000
"""Messages that a client may have without acknowledging one (`ConsumerHandler.java` of 4.2)."""
INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
ROUTING_MODES: Final = ("SinglePartition", "RoundRobinPartition", "CustomPartition")
CODECS: Final = {
    "NONE": pb.NO_COMPRESSION,
    "LZ4": pb.LZ4,
    "ZLIB": pb.ZLIB,
    "ZSTD": pb.ZSTD,
    "SNAPPY": pb.SNAPPY,
}
HASHES: Final = ("JavaStringHash", "Murmur3_32Hash")
SUBSCRIPTION_TYPES: Final = {"Exclusive": 0, "Shared": 1, "Failover": 2, "Key_Shared": 3}
MODES: Final = ("Durable", "NonDurable")


_NUMBER: Final = re.compile(r"[+-]?\d{1,19}")
"""As Java reads one, so without spaces around it."""
NOTHING_SAID: Final = "none"
"""The method of a client that does not say who it is."""


class RefusedRequest(Exception):
    """A request that gets an HTTP error instead of a WebSocket."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Kind(Enum):
    """What is opened."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    READER = "reader"


class WebSocketCredentials(Struct, frozen=True):
    """What CONNECT says of who it is."""

    method: str = NOTHING_SAID
    data: bytes = b""


class WebSocketEndpoint(Struct, frozen=True):
    """See the module's docstring."""

    kind: Kind
    topics: tuple[TopicName, ...]
    """One, or those of a consumer of several. Of a pattern: one of its namespace, named by it."""
    subscription: str
    """Of a consumer."""
    query: Mapping[str, str]
    credentials: WebSocketCredentials
    is_of_several: bool = False
    """Whether it is a path of /ws/v3."""
    pattern: str = ""
    """Of a consumer of all topics that match it."""

    @property
    def topic(self) -> TopicName:
        """The only one, or the first."""
        return self.topics[0]

    def number(self, name: str, default: int, least: int = 0, most: int = INT_MAX) -> int:
        """A whole number of the query; those of Apache's proxy are Java's `int`, most of them."""
        text = self.query.get(name)
        if text is None:
            return default
        found = int(text) if _NUMBER.fullmatch(text) else least - 1
        if not least <= found <= most:
            raise RefusedRequest(
                400, f"Invalid query params: {name} is a number from {least} to {most}"
            )
        return found

    def name(self, field: str) -> str:
        """A name that may be left out, but not be blank."""
        found = self.query.get(field, "")
        if field in self.query and not found.strip():
            raise RefusedRequest(400, f"Invalid query params: {field} cannot be blank")
        return found

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() == "true"

    def choice(self, name: str, among: Iterable[str], default: str) -> str:
        """One of several words of the query."""
        found = self.query.get(name, default)
        if found not in among:
            raise RefusedRequest(400, f"Invalid query params: {name} is one of {', '.join(among)}")
        return found


def endpoint_of(
    target: str, headers: Iterable[tuple[bytes, bytes]], cluster: str
) -> WebSocketEndpoint:
    """The endpoint that a request is for."""
    path, _, query = target.partition("?")
    try:
        fields = parse_qsl(
            query, keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"
        )
    except ValueError as error:
        reason = "Invalid query params: too many, or not URL-encoded UTF-8"
        raise RefusedRequest(400, reason) from error
    asked: dict[str, str] = {}
    for name, value in fields:
        asked.setdefault(name, value)
    credentials = credentials_of(headers, asked)
    if path.startswith(SEVERAL):
        return _several(_decoded(path.removeprefix(SEVERAL)), asked, credentials)
    kind, names = _kind_of(path, cluster)
    domain, tenant, namespace, *rest = names
    subscription = ""
    if kind is Kind.CONSUMER:
        subscription = _decoded(rest.pop())
    local = _decoded("/".join(each for each in rest if each))
    try:
        if "/" in local:
            raise InvalidName(f"{local!r} cannot name a topic: it has a slash")
        topic = TopicName.parse(f"{domain}://{_decoded(tenant)}/{_decoded(namespace)}/{local}")
        if kind is Kind.CONSUMER:
            check_subscription(subscription)
    except InvalidName as error:
        raise RefusedRequest(400, f"Invalid query params: {error}") from error
    return WebSocketEndpoint(kind, (topic,), subscription, asked, credentials)


def _decoded(step: str) -> str:
    """A part of the path, in which no name is made of what is not UTF-8."""
    try:
        return unquote(step, errors="strict")
    except UnicodeDecodeError as error:
        raise RefusedRequest(400, "Invalid query params: a name is not UTF-8") from error


def _several(
    subscription: str, query: Mapping[str, str], credentials: WebSocketCredentials
) -> WebSocketEndpoint:
    """A consumer of several topics (`MultiTopicConsumerHandler.java` of 4.2)."""
    pattern, listed = query.get("topicsPattern", ""), query.get("topics", "")
    if bool(pattern) is bool(listed):
        raise RefusedRequest(400, "Invalid query params: either topics or topicsPattern")
    if pattern and "deadLetterTopic" not in query and "maxRedeliverCount" in query:
        raise RefusedRequest(400, "Invalid query params: a pattern needs a deadLetterTopic")
    names = [pattern] if pattern else listed.split(",")
    if len(names) > TOPICS_MAX:
        raise RefusedRequest(400, f"Invalid query params: at most {TOPICS_MAX} topics")
    try:
        check_subscription(subscription)
        # a topic that is there twice would be attached twice
        topics = tuple(dict.fromkeys(map(TopicName.parse, names)))
    except InvalidName as error:
        raise RefusedRequest(400, f"Invalid query params: {error}") from error
    if pattern:
        pattern = topics[0].full
        try:
            watchable(pattern.partition("://")[2])
        except Invalid as error:
            raise RefusedRequest(400, f"Invalid query params: topicsPattern: {error}") from error
    return WebSocketEndpoint(
        Kind.CONSUMER,
        topics,
        subscription,
        query,
        credentials,
        is_of_several=True,
        pattern=pattern,
    )


def _kind_of(path: str, cluster: str) -> tuple[Kind, list[str]]:
    """The kind of endpoint, and the parts of its names from the domain on, without a cluster."""
    steps = path.removeprefix(PREFIX).split("/")
    has_version = steps[0] == "v2"
    if has_version:
        del steps[0]
    try:
        kind = Kind(steps[0] if steps else "")
    except ValueError as error:
        raise RefusedRequest(404, f"there is no {path[:200]} here") from error
    names = steps[1:]
    if not has_version and len(names) > 2:
        if names[2] != cluster:
            other = (
                f"{names[2][:100]} is no cluster here, and paths without one begin with {PREFIX}v2/"
            )
            raise RefusedRequest(404, f"Invalid topic name format: {other}")
        del names[2]
    if len(names) < 4 + (kind is Kind.CONSUMER):
        raise RefusedRequest(400, "Invalid query params: Invalid topic name format")
    if names[0] not in DOMAINS:
        raise RefusedRequest(400, f"Invalid query params: the domain is one of {DOMAINS}")
    return kind, names


def credentials_of(
    headers: Iterable[tuple[bytes, bytes]], query: Mapping[str, str]
) -> WebSocketCredentials:
    """Who the client says that it is: by a header as in HTTP, or by the token of its query, since
    browsers can set no header.
    """
    method = ""
    for name, value in headers:
        if name == b"x-pulsar-auth-method-name":
            method = value.decode("latin-1")
    for name, value in headers:
        if name != b"authorization":
            continue
        scheme, _, rest = value.strip().partition(b" ")
        if scheme.lower() == b"bearer":
            return WebSocketCredentials(method or "token", rest.strip())
        if scheme.lower() == b"basic":
            try:
                return WebSocketCredentials(method or "basic", binascii.a2b_base64(rest.strip()))
            except binascii.Error as error:
                raise RefusedRequest(401, "Failed to authenticate: no base64") from error
    if token := query.get("token"):
        return WebSocketCredentials("token", token.encode())
    return WebSocketCredentials(method or NOTHING_SAID)
