"""One request as handlers see it: names from its path, flags from its query, a body within limits.

Paths are matched while still URL-encoded, and decoded here piece by piece, so that a slash
in a subscription's name is not a separator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote, unquote_to_bytes

import msgspec
import trio
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from magnetar.core.kernel.errors import Invalid, InvalidName
from magnetar.core.kernel.names import (
    DOMAINS,
    PERSISTENT,
    NamespaceName,
    TopicName,
    check_subscription,
)
from magnetar.core.policy.java_values import CONVERT, fields_of
from magnetar.core.policy.policies import decode
from magnetar.core.security.actions import Action, ResourceType, subscription_of
from magnetar.core.security.identity import ANYBODY, Identity
from magnetar.wire.http.advertised_address import as_reached
from magnetar.wire.http.limits.memory import FREE_BYTES, NO_ROOM
from magnetar.wire.http.options import HttpOptions
from magnetar.wire.http.services import HttpServices

if TYPE_CHECKING:
    from ssl import SSLObject

    from magnetar.core.broker.broker import Broker

Kind = TypeVar("Kind")

TLS_STATE: Final = "tls"
"""Of a connection, as its requests have it in their state (ASGI's lifespan state)."""
DEPTH_MAX: Final = 64
"""Nesting of objects and lists in a body."""
_WHOLE = re.compile(r"-?[0-9]{1,18}|9223372036854775807", re.ASCII)  # the last is Java's "latest"
BODY_SECONDS_MAX: Final = 20.0
"""Time for a complete body to arrive; after that, 408."""
DISCONNECTED: Final = 499
"""The status of a request whose client has disconnected: nginx's 499. No client sees it."""


class AdminRequest:
    """See the module's docstring."""

    __slots__ = ("_body", "_taken", "by_session", "identity", "original", "request", "services")

    def __init__(self, services: HttpServices, request: Request) -> None:
        self.services = services
        self.request = request
        self.identity: Identity = ANYBODY
        """Who asks, once that is known (`rights.py`)."""
        self.by_session = False
        """Whether a session's cookie says who asks, and nothing else."""
        self.original: Identity | None = None
        """Whom a proxy speaks for; both need each right."""
        self._body: bytes | None = None
        self._taken = 0
        """Bytes taken from the memory for bodies."""

    @property
    def broker(self) -> Broker:
        return self.services.broker

    @property
    def options(self) -> HttpOptions:
        """The options, with addresses that the client can reach."""
        return as_reached(self.services.options, self.request)

    # -- rights -------------------------------------------------------------------------------

    @property
    def host(self) -> str:
        """The address of the client."""
        client = self.request.client
        return client.host if client is not None else ""

    @property
    def tls(self) -> SSLObject | None:
        """The connection's TLS, if it has any (`server/http1.py`)."""
        found: SSLObject | None = self.request.scope.get("state", {}).get(TLS_STATE)
        return found

    def check(self, action: Action, kind: ResourceType, name: str) -> None:
        """Raise `Unauthorized` unless the client may do that. Plain call."""
        access = self.services.access
        access.check(self.identity, action, kind, name, self.host)
        if self.original is not None:
            access.check(self.original, action, kind, name, self.host)

    def allows(self, action: Action, kind: ResourceType, name: str) -> bool:
        """Whether the client may do that; no denial is noted."""
        access = self.services.access
        everybody = (self.identity,) if self.original is None else (self.identity, self.original)
        return all(access.allows(who, action, kind, name, self.host) for who in everybody)

    @property
    def principal(self) -> str:
        """The name of whom it acts for; empty without authentication."""
        return self.identity.name if self.original is None else self.original.name

    def check_readable(self, name: TopicName, subscription: str | None = None) -> None:
        """Raise `Unauthorized` unless the client may consume a topic that its body names."""
        topic = name.base.full
        if subscription is None:
            self.check(Action.READ, ResourceType.TOPIC, topic)
        else:
            resource = subscription_of(topic, subscription)
            self.check(Action.READ, ResourceType.SUBSCRIPTION, resource)

    # -- the path -----------------------------------------------------------------------------

    def part(self, key: str) -> str:
        """One decoded part of the path."""
        try:
            return unquote(self.request.path_params[key], errors="strict")
        except UnicodeDecodeError as error:
            raise InvalidName(f"{key} is not UTF-8") from error

    @property
    def domain(self) -> str:
        """`persistent` or `non-persistent`, from the path at which the routes are mounted; other
        mounts do not tell topics of one name apart.
        """
        mount = str(self.request.scope["root_path"].rpartition("/")[2])
        return mount if mount in DOMAINS else PERSISTENT

    @property
    def namespace(self) -> NamespaceName:
        return NamespaceName.parse(f"{self.part('tenant')}/{self.part('namespace')}")

    @property
    def topic(self) -> TopicName:
        namespace, local = self.namespace, self.part("topic")
        return TopicName.parse(f"{self.domain}://{namespace}/{local}")

    async def partitioned(self) -> bool:
        """Whether the name is that of a partitioned topic, not of one of its partitions."""
        name = self.topic
        return not name.partitioned and bool(await self.broker.catalog.partitions(name))

    @property
    def subscription(self) -> str:
        name = self.part("subscription")
        check_subscription(name)
        return name

    def path_number(self, key: str) -> int:
        return _number(key, self.part(key))

    def path_count(self, key: str) -> int:
        """A number from the path; 412 if it is negative."""
        number = self.path_number(key)
        if number < 0:
            raise HTTPException(412, f"{key} must be 0 or more")
        return number

    # -- the query ----------------------------------------------------------------------------

    def check_query(self) -> None:
        """Refuse a query that is not UTF-8, in which Starlette would silently replace bytes."""
        try:
            unquote_to_bytes(self.request.scope["query_string"]).decode()
        except UnicodeDecodeError as error:
            raise Invalid("the query is not UTF-8") from error

    def flag(self, key: str) -> bool:
        return self.text(key).lower() == "true"

    def text(self, key: str, default: str = "") -> str:
        found = self.texts(key)
        return found[-1] if found else default

    def texts(self, key: str) -> list[str]:
        """All values of a key, which may occur several times."""
        return self.request.query_params.getlist(key)

    def number(self, key: str, default: int) -> int:
        text = self.text(key)
        return _number(key, text) if text or self.texts(key) else default

    # -- the body -----------------------------------------------------------------------------

    async def body(self) -> bytes:
        """The complete body; 413 beyond the limit, 408 if it takes too long."""
        if self._body is None:
            try:
                with trio.fail_after(BODY_SECONDS_MAX):
                    self._body = await self._received()
            except trio.TooSlowError as error:
                seconds = f"{BODY_SECONDS_MAX:.0f} seconds"
                raise HTTPException(408, f"the body must arrive within {seconds}") from error
        return self._body

    async def _received(self) -> bytes:
        limit, pool = self.services.options.body_bytes_max, self.services.memory.bodies
        parts, size = [], 0
        try:
            async with aclosing(self.request.stream()) as stream:
                async for part in stream:
                    size += len(part)
                    if size > limit:
                        raise HTTPException(413, f"a body may have at most {limit} bytes")
                    if size > FREE_BYTES:
                        if not pool.take(len(part), had=self._taken):
                            raise HTTPException(503, NO_ROOM)
                        self._taken += len(part)
                    parts.append(part)
            return b"".join(parts)
        except ClientDisconnect as error:
            raise HTTPException(DISCONNECTED, "the client has disconnected") from error

    def over(self) -> None:
        """Release the body's memory, once the request is answered."""
        self.services.memory.bodies.give_back(self._taken)
        self._taken = 0

    async def words(self) -> str:
        """The body as text."""
        try:
            return (await self.body()).decode()
        except UnicodeDecodeError as error:
            raise Invalid("the body is not UTF-8") from error

    async def json(self, kind: type[Kind]) -> Kind:
        """The body as a Struct; absent, empty and `null` give its defaults."""
        body = await self.body()
        if body.strip():
            parsed(body)
        return decode(body, kind, "the body is invalid")

    async def exact(self, kind: type[Kind]) -> Kind | None:
        """The body as a value of type `kind`, which limits its numbers, as a program writes it;
        None when absent or empty. Of thousands of numbers, in a third of the time.
        """
        body = (await self.body()).strip()
        if not body:
            return None
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Invalid(f"the body is invalid: {error}") from error

    async def value(self, kind: Any) -> Any:
        """The body as a plain value of type `kind`; None when absent, empty or `null`."""
        body = (await self.body()).strip()
        if not body or body == b"null":
            return None
        return plain(body, kind)

    async def record(self, kind: type[Struct]) -> Any:
        """The same as a record of Java's, which has other fields than `kind` passed over."""
        body = (await self.body()).strip()
        if not body or body == b"null":
            return None
        return _converted(fields_of(parsed(body), kind), kind)

    async def scalar(self, kind: Any) -> Any:
        """The same as a number or boolean of Java's; 400 for no body at all."""
        body = (await self.body()).strip()
        if not body:
            raise HTTPException(400, "The request entity cannot be empty.")
        value = parsed(body)
        return None if value is None else _converted(CONVERT[kind](value), kind, strict=True)


def distinct(names: Iterable[str]) -> list[str]:
    """Names without repetitions, in their order: in Java's records such lists are sets."""
    return list(dict.fromkeys(names))


def plain(body: bytes, kind: Any) -> Any:
    """Read JSON as leniently as Jackson: numbers and booleans may come as strings."""
    return _converted(parsed(body), kind)


def _converted(value: Any, kind: Any, *, strict: bool = False) -> Any:
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.MsgspecError as error:
        raise Invalid(f"the body is invalid: {error}") from error


def parsed(body: bytes) -> Any:
    """The body as JSON; `Invalid` for values that cannot be stored and read again."""
    try:
        value = msgspec.json.decode(body)
    except UnicodeDecodeError as error:  # msgspec decodes strings late, outside DecodeError
        raise Invalid("the body is not JSON: it is not UTF-8") from error
    except msgspec.DecodeError as error:
        raise Invalid(f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise Invalid("the body is nested too deeply") from error
    _check(value, DEPTH_MAX)
    return value


def _check(value: Any, depth_left: int) -> None:
    if type(value) is int:
        if not -(1 << 63) <= value < 1 << 63:
            raise Invalid("the body has a number of more than 64 bits")
    elif isinstance(value, dict | list):
        if not depth_left:
            raise Invalid(f"the body is nested more than {DEPTH_MAX} deep")
        for inner in value.values() if isinstance(value, dict) else value:
            kind = type(inner)  # there may be thousands of texts and numbers
            if kind is not str and not (kind is int and -(1 << 63) <= inner < 1 << 63):
                _check(inner, depth_left - 1)


def _number(key: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise Invalid(f"{key} must be a whole number of up to 18 digits, not {text[:40]!r}")
    return int(text)
