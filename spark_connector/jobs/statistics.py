"""What the server says of subscriptions, consumer groups and MQTT sessions: its admin interface.

Consumer groups are subscriptions here. All MQTT sessions of a topic have one subscription, which is
left out: each session has a place of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from msgspec import Struct

from magnetar.core.kernel.names import TopicName
from magnetar.spark_connector.admin_client import AdminClient
from magnetar.spark_connector.errors import RefusedError

SESSIONS_PER_PAGE: Final = 1_000
MQTT_SUBSCRIPTION: Final = "mqtt-sessions"
Json = Mapping[str, Any]


class Reader(Struct, frozen=True):
    """Who reads a log, and from where."""

    kind: str
    """`subscription`, `group` (of Kafka, or never attached to), or `session` (MQTT)."""
    name: str
    log: str
    ledger_id: int
    entry_id: int
    """The first entry with a message that is not acknowledged, or the one behind the last."""
    place: int = 0
    """Of the message in its entry."""
    unacknowledged: int | None = None
    """Entries, as the server counts them; individual acknowledgements are in."""
    consumers: int = 0


class ServerStatistics:
    """Asks for them."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client

    def namespaces(self) -> list[str]:
        tenants = self._get("/admin/v2/tenants")
        return [one for tenant in tenants for one in self._get(f"/admin/v2/namespaces/{tenant}")]

    def subscriptions(self, log: str) -> list[Reader]:
        """Those of a topic, or of a partition; none if it is gone."""
        name = TopicName.parse(log)
        path = f"/admin/v2/persistent/{name.namespace}/{quote(name.local, safe='')}"
        try:
            cursors = self._get(f"{path}/internalStats")["cursors"]
            shown = self._get(f"{path}/stats", excludePublishers="true")["subscriptions"]
        except RefusedError:
            return []
        return [
            subscription_of(log, each, cursor, shown[each])
            for each, cursor in cursors.items()
            if each in shown and each != MQTT_SUBSCRIPTION
        ]

    def session_names(self) -> Iterator[tuple[str, str]]:
        """Namespaces and client ids of MQTT's sessions."""
        for namespace in self._get("/admin/v2/mqtt"):
            after: str | None = ""
            while after is not None:
                page = self._get(
                    f"/admin/v2/mqtt/{namespace}/sessions", after=after, limit=SESSIONS_PER_PAGE
                )
                for one in page["sessions"]:
                    yield namespace, one["clientId"]
                after = page["next"]

    def session(self, namespace: str, client: str) -> list[Reader]:
        """The places of a session in its topics; none if it has ended."""
        path = f"/admin/v2/mqtt/{namespace}/sessions/{quote(client, safe='')}"
        try:
            found = self._get(path)
        except RefusedError:
            return []
        return [session_of(client, place, found["state"]) for place in found["places"]]

    def _get(self, path: str, **query: object) -> Any:
        return self._client.ask("GET", f"{path}?{urlencode(query)}" if query else path, None, Any)


def subscription_of(log: str, name: str, cursor: Json, shown: Json) -> Reader:
    """A subscription from its internal statistics, and from those that all tools show."""
    ledger, _, entry = cursor["markDeletePosition"].rpartition(":")
    return Reader(
        "subscription" if shown["type"] else "group",
        name,
        log,
        int(ledger),
        int(entry) + 1,
        unacknowledged=shown["msgBacklog"],
        consumers=len(shown["consumers"]),
    )


def session_of(client: str, place: Json, state: str) -> Reader:
    """A session's place in one topic."""
    return Reader(
        "session",
        client,
        TopicName.parse(place["topic"]).full,
        place["ledgerId"],
        place["entryId"],
        place["place"],
        unacknowledged=place["backlog"],
        consumers=int(state == "connected"),
    )
