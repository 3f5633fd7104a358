"""Who may ask for a path: the right of each row of a table, and the identity of a request.

The rights are those of `PulsarAuthorizationProvider.java` of 4.2: what it lets a producer or a
consumer do with a topic or namespace needs that permission, all other of a tenant's needs its
administrator, and what belongs to no tenant a superuser. Superusers may do everything.

An identity comes with each request: `Authorization: Bearer TOKEN`, or `Basic` with name and
password. Without that header it is that of a login session, or of the client's certificate; with
none of them a request is anonymous, if that is allowed. 401 asks for an identity, 403 says that an
identity lacks the right. A proxy names its client, and both need the right. Light: no web
framework.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.errors import Invalid, Unauthenticated, Unauthorized
from magnetar.core.schema.records import Named, Subject
from magnetar.core.schema.subjects import HOME, named
from magnetar.core.security.actions import Action, ResourceType, subscription_of
from magnetar.core.security.conversation import BASIC, TOKEN, AuthPeer
from magnetar.core.security.identity import Identity
from magnetar.wire.http.login_sessions import COOKIE

if TYPE_CHECKING:
    from magnetar.core.security.access import Access
    from magnetar.core.security.conversation import Conversation
    from magnetar.wire.http.request import AdminRequest

CHALLENGE: Final = 'Bearer realm="magnetar", Basic realm="magnetar", charset="UTF-8"'
"""`WWW-Authenticate` of a 401."""
ORIGINAL: Final = "x-original-principal"
"""The header of a proxy with the name of its client."""
_MECHANISMS: Final = {"bearer": TOKEN, "basic": BASIC}


class Needs(Enum):
    """What a row of a table needs, in the words of `docs/admin.md`."""

    OPEN = "nothing"
    """It reveals nothing."""
    OF_BOOKIE = "a superuser, if the bookie asks who its clients are"
    HEALTH = "nothing, or an identity (`security.open_health`)"
    METRICS = "nothing, or an identity (`security.open_metrics`)"
    IDENTITY = "an identity"
    SUPERUSER = "a superuser"
    TENANT_ADMIN = "an administrator of the tenant"
    TENANTS_ADMIN = "an administrator of the tenant of the topics that are named"
    """Asked for by the handler, once it has read the names."""
    NAMESPACE = "any permission of the namespace"
    TOPIC = "any permission of the topic"
    """As a lookup does."""
    CONSUMER = "consume, of the topic or of the named subscription"
    PRODUCER = "produce, of the topic"
    SUBJECT = "any permission of the topic of the subject"
    """Of the default namespace, for subjects of no topic."""
    SUBJECT_WRITER = "produce, of the topic of the subject"
    """To administer the default tenant, for subjects of no topic."""
    READER = "consume, of each topic that is named"
    """Asked for by the handler, once it has read the names; before that, to consume something."""
    WRITER = "produce somewhere"
    """What is written later is asked for then."""


Need = tuple[Action, ResourceType, str]


def _superuser(_request: AdminRequest) -> Need:
    return Action.ALTER, ResourceType.SERVER, ""


def _tenant(request: AdminRequest) -> Need:
    return Action.ALTER, ResourceType.TENANT, request.part("tenant")


def _namespace(request: AdminRequest) -> Need:
    return Action.DESCRIBE, ResourceType.NAMESPACE, str(request.namespace)


def _topic(request: AdminRequest) -> Need:
    return Action.DESCRIBE, ResourceType.TOPIC, request.topic.base.full


def _consumer(request: AdminRequest) -> Need:
    topic = request.topic.base.full
    if "subscription" not in request.request.path_params:
        return Action.READ, ResourceType.TOPIC, topic
    resource = subscription_of(topic, request.subscription)
    return Action.READ, ResourceType.SUBSCRIPTION, resource


def _producer(request: AdminRequest) -> Need:
    return Action.WRITE, ResourceType.TOPIC, request.topic.base.full


def _subject(request: AdminRequest) -> Need:
    name = _named(request)
    if isinstance(name, Subject):
        return Action.DESCRIBE, ResourceType.NAMESPACE, str(HOME)
    return Action.DESCRIBE, ResourceType.TOPIC, name.full


def _subject_writer(request: AdminRequest) -> Need:
    name = _named(request)
    if isinstance(name, Subject):
        return Action.ALTER, ResourceType.TENANT, HOME.tenant
    return Action.WRITE, ResourceType.TOPIC, name.full


def _named(request: AdminRequest) -> Named:
    """A name that cannot be is refused by the handler, in its own form."""
    try:
        return named(request.part("subject"))
    except Invalid:
        return Subject("")


DEMANDS: Final[Mapping[Needs, Callable[[AdminRequest], Need]]] = {
    Needs.SUPERUSER: _superuser,
    Needs.OF_BOOKIE: _superuser,
    Needs.TENANT_ADMIN: _tenant,
    Needs.NAMESPACE: _namespace,
    Needs.TOPIC: _topic,
    Needs.CONSUMER: _consumer,
    Needs.PRODUCER: _producer,
    Needs.SUBJECT: _subject,
    Needs.SUBJECT_WRITER: _subject_writer,
}
CLOSABLE: Final[Mapping[Needs, str]] = {Needs.METRICS: "/metrics", Needs.HEALTH: "/healthz"}
"""Rows that a setting opens to everybody."""
SOMEWHERE: Final[Mapping[Needs, Action]] = {Needs.READER: Action.READ, Needs.WRITER: Action.WRITE}


def is_open(right: Needs, open_paths: frozenset[str]) -> bool:
    """Whether a row is for everybody."""
    if right in CLOSABLE:
        return CLOSABLE[right] in open_paths
    return right is Needs.OPEN


async def authorize(request: AdminRequest, right: Needs) -> None:
    """Find out who asks, and raise unless he may."""
    access = request.services.access
    if not access.asks and access.judge is None:
        return
    if is_open(right, request.services.options.open_paths):
        return
    request.identity = who = await identified(request, access)
    if access.judge is None:
        return
    request.original = original = _original(request, who)
    try:
        if right in DEMANDS:
            request.check(*DEMANDS[right](request))
        elif right in SOMEWHERE:
            for each in filter(None, (who, original)):
                access.check_somewhere(each, SOMEWHERE[right], ResourceType.TOPIC, request.host)
    except Unauthorized as error:
        if who is access.nobody:
            raise Unauthenticated(f"{error}: authenticate") from error
        raise


async def identified(request: AdminRequest, access: Access) -> Identity:
    """The identity of a request; raises `Unauthenticated` if it has none, or a wrong one."""
    header = request.request.headers.get("authorization")
    peer = AuthPeer(request.host, request.tls)
    if header is None and access.asks and (cookie := request.request.cookies.get(COOKIE)):
        found = request.services.sessions.identity(cookie)
        request.by_session = True
        return found
    if header is None or not access.asks:
        by_certificate = access.by_certificate(peer)
        if by_certificate is None:
            return access.anonymous()
        return await _proven(by_certificate, b"")
    scheme, _, rest = header.partition(" ")
    said = rest.strip()
    mechanism = _MECHANISMS.get(scheme.lower())
    if mechanism is None:
        raise Unauthenticated("Authorization is Bearer with a token, or Basic")
    conversation = access.begin(mechanism, peer)
    return await _proven(conversation, _decoded(said) if mechanism == BASIC else said.encode())


async def _proven(conversation: Conversation, said: bytes) -> Identity:
    await conversation.respond(said)
    if conversation.identity is None:
        raise Unauthenticated("this takes more than one message, which HTTP has not")
    return conversation.identity


def _original(request: AdminRequest, who: Identity) -> Identity | None:
    """Whom a proxy speaks for; others may speak for nobody (`PulsarWebResource.java` of 4.2)."""
    proxies = request.services.options.proxy_roles
    named = request.request.headers.get(ORIGINAL, "")
    if proxies.isdisjoint(who.roles):
        if named:
            raise Unauthorized("Invalid roles: only a proxy may name an original principal")
        return None
    if not named or named in proxies:
        raise Unauthorized("Invalid roles: a proxy has to name an original principal")
    return Identity(named, method=who.method)


def _decoded(said: str) -> bytes:
    try:
        return base64.b64decode(said, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unauthenticated("Basic has base64 of name:password") from error
