"""`/admin/v2/mqtt`: sessions, retained messages, mapping rules and shared subscriptions of MQTT.

The front of MQTT implements what is asked for (`core/ports/client_administration.py`); the
composition root passes it in. Long lists come in pages: `limit` names, after the name `after`.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from magnetar.core.kernel.errors import Invalid, NotFound
from magnetar.core.ports.client_administration import (
    ASLEEP,
    CONNECTED,
    ClientAdministration,
    Page,
    RetainedDetails,
    RetainedQuery,
    RuleDetails,
    RulesDetails,
    SessionDetails,
    SessionQuery,
    SharedSubscriptionQuery,
)
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table

Json = dict[str, Any]

LIMIT: Final = 100
LIMIT_MAX: Final = 1_000
DELETED_MAX: Final = 10_000
"""Retained messages that one request deletes."""


async def namespaces(request: AdminRequest) -> list[str]:
    """The namespaces whose topics store messages of MQTT's clients."""
    return sorted(request.options.mqtt_clients)


def _clients(request: AdminRequest) -> ClientAdministration:
    found = request.options.mqtt_clients.get(str(request.namespace))
    if found is None:
        raise NotFound(f"no MQTT listener uses the namespace {request.namespace}")
    return found


def _limit(request: AdminRequest, default: int = LIMIT, most: int = LIMIT_MAX) -> int:
    found = request.number("limit", default)
    if not 0 < found <= most:
        raise Invalid(f"limit must be between 1 and {most}")
    return found


def _page(name: str, page: Page[Any]) -> Json:
    return {name: page.items, "next": page.next}


# -- sessions ----------------------------------------------------------------------------------


async def sessions(request: AdminRequest) -> Json:
    state = request.text("state")
    if state not in ("", CONNECTED, ASLEEP):
        raise Invalid(f"state must be {CONNECTED} or {ASLEEP}")
    query = SessionQuery(request.text("prefix"), state, request.text("after"), _limit(request))
    return _page("sessions", await _clients(request).sessions.sessions(query))


async def session(request: AdminRequest) -> SessionDetails:
    return await _clients(request).sessions.session(request.part("client"))


async def end_session(request: AdminRequest) -> None:
    """End it and its connection; its will is published."""
    await _clients(request).sessions.end_session(request.part("client"))


async def disconnect(request: AdminRequest) -> None:
    """Close its connection; the session goes on as after any other end of a connection."""
    await _clients(request).sessions.disconnect(request.part("client"))


# -- retained messages -------------------------------------------------------------------------


async def retained(request: AdminRequest) -> Json:
    query = RetainedQuery(request.text("filter"), request.text("after"), _limit(request))
    return _page("topics", await _clients(request).retained.topics(query))


async def retained_message(request: AdminRequest) -> RetainedDetails:
    return await _clients(request).retained.message(request.part("topic"))


async def delete_retained(request: AdminRequest) -> None:
    await _clients(request).retained.delete(request.part("topic"))


async def delete_matching(request: AdminRequest) -> Json:
    """Delete those that a filter matches, which has to be stated."""
    filter, limit = request.text("filter"), _limit(request, DELETED_MAX, DELETED_MAX)
    if not filter:
        raise Invalid("filter is missing: # is all topics that do not begin with $")
    query = RetainedQuery(filter, limit=limit)
    deleted = await _clients(request).retained.delete_matching(query)
    return {"deleted": deleted, "more": deleted == limit}


# -- mapping rules -----------------------------------------------------------------------------


class RuleBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule as tools send it."""

    filter: str
    topic: str


class RulesBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Rules as tools send them; an unknown field would be a rule that is not followed."""

    rules: list[RuleBody] | None = None
    configured: bool = False
    """Means nothing: what was read can be sent back."""
    version: int | None = None


async def rules(request: AdminRequest) -> RulesDetails:
    return await _clients(request).rules.rules()


async def set_rules(request: AdminRequest) -> None:
    """Replace all rules; 409 if they have another version than stated."""
    body = await request.value(RulesBody)
    if body is None or body.rules is None:
        raise Invalid("rules are missing: an empty list is the default rule only")
    rules = [RuleDetails(one.filter, one.topic) for one in body.rules]
    await _clients(request).rules.set_rules(rules, body.version)


async def reset_rules(request: AdminRequest) -> None:
    """Go back to the rules of the configuration."""
    version = request.number("version", -1)
    await _clients(request).rules.reset_rules(None if version < 0 else version)


# -- shared subscriptions ----------------------------------------------------------------------


async def shared_subscriptions(request: AdminRequest) -> Json:
    query = SharedSubscriptionQuery(request.text("after"), _limit(request))
    page = await _clients(request).shared_subscriptions.shared_subscriptions(query)
    return _page("sharedSubscriptions", page)


HERE: Final = "/{tenant}/{namespace}"
SESSION: Final = f"{HERE}/sessions/{{client}}"
TABLE: Final[Table] = (
    ("GET", "", namespaces, Needs.SUPERUSER),
    ("GET", f"{HERE}/sessions", sessions, Needs.TENANT_ADMIN),
    ("GET", SESSION, session, Needs.TENANT_ADMIN),
    ("DELETE", SESSION, end_session, Needs.TENANT_ADMIN),
    ("POST", f"{SESSION}/disconnect", disconnect, Needs.TENANT_ADMIN),
    ("GET", f"{HERE}/retained", retained, Needs.TENANT_ADMIN),
    ("DELETE", f"{HERE}/retained", delete_matching, Needs.TENANT_ADMIN),
    ("GET", f"{HERE}/retained/{{topic}}", retained_message, Needs.TENANT_ADMIN),
    ("DELETE", f"{HERE}/retained/{{topic}}", delete_retained, Needs.TENANT_ADMIN),
    ("GET", f"{HERE}/rules", rules, Needs.TENANT_ADMIN),
    ("PUT", f"{HERE}/rules", set_rules, Needs.TENANT_ADMIN),
    ("DELETE", f"{HERE}/rules", reset_rules, Needs.TENANT_ADMIN),
    ("GET", f"{HERE}/shared-subscriptions", shared_subscriptions, Needs.TENANT_ADMIN),
)
