"""Places of readers, from the server's answers."""

import pytest

from magnetar.spark_connector.admin_client import AdminClient
from magnetar.spark_connector.errors import ServiceError
from magnetar.spark_connector.jobs.statistics import (
    Reader,
    ServerStatistics,
    session_of,
    subscription_of,
)

SHOWN = {"msgBacklog": 5, "consumers": [{}], "type": "Shared"}


@pytest.mark.parametrize(("kind", "named"), [("Shared", "subscription"), (None, "group")])
def test_subscriptions(kind: str | None, named: str) -> None:
    found = subscription_of("t", "s", {"markDeletePosition": "7:4"}, {**SHOWN, "type": kind})
    assert found == Reader(named, "s", "t", 7, 5, 0, 5, 1)


def test_before_the_first_entry() -> None:
    found = subscription_of("t", "s", {"markDeletePosition": "-1:-1"}, SHOWN)
    assert (found.ledger_id, found.entry_id) == (-1, 0)


def test_sessions() -> None:
    place = {"topic": "mqtt", "ledgerId": 3, "entryId": 4, "place": 2, "backlog": 9}
    assert session_of("c", place, "asleep") == Reader(
        "session", "c", "persistent://public/default/mqtt", 3, 4, 2, 9, 0
    )


def test_nobody_answers() -> None:
    server = ServerStatistics(AdminClient(["http://127.0.0.1:1"], 0.1))
    with pytest.raises(ServiceError, match="does not answer"):
        server.namespaces()
