"""What Apache's Java client sees of transactions; the scenes are in src/, in Transactions.java."""

import httpx
import pytest

from interop_tests.driver import SceneError
from interop_tests.pulsar.java.driver import numbered
from magnetar import standalone

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]

TYPES = ["Exclusive", "Shared", "Failover", "Key_Shared"]


@pytest.fixture
def play(java, server, topic):
    """Plays one scene on the session's server with a fresh topic."""

    def played(scene: str, **args):
        url = server.pulsar_url
        return java.play(f"transactions.{scene}", url, topic, transactions=True, **args)

    return played


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("commit", [True, False])
def test_messages_wait_for_the_end(play, commit, batched):
    seen = play("publish", commit=commit, batched=batched)
    assert seen == {
        "early": True,
        "found": [*(numbered(0, 3) if commit else []), "behind"],
        "left": [],
        "state": "COMMITTED" if commit else "ABORTED",
    }


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("kind", TYPES)
def test_acknowledgements_wait_for_the_end(play, kind, commit):
    seen = play("acknowledge", type=kind, commit=commit)
    assert sorted(seen["meanwhile"]) == ["1", "3", "5"], "none that the transaction has"
    assert seen.get("again", numbered(0, 6)) == numbered(0, 6)
    assert seen["left"] == []


@pytest.mark.parametrize("kind", ["Shared", "Exclusive"])
def test_messages_of_a_batch(play, kind):
    seen = play("batch", type=kind)
    assert seen == {"taken": "TransactionConflictException", "again": ["1", "2"]}


@pytest.mark.parametrize("batched", [False, True])
def test_cumulative(play, batched):
    seen = play("cumulative", batched=batched)
    assert seen == {
        "taken": "TransactionConflictException",
        "again": numbered(0, 6),
        "left": ["4", "5"],
    }


def test_one_message_in_two(play):
    assert play("conflict") == dict.fromkeys(("open", "over"), "TransactionConflictException")


def test_who_forgets_it_has_it_aborted(play):
    seen = play("timeout")
    assert seen["again"] == ["0"]
    assert seen["late"] in ("TransactionNotFoundException", "InvalidTxnStatusException")
    assert seen["left"] == []


def test_what_is_over_is_over(play):
    over = "InvalidTxnStatusException"
    assert play("ended") == {"again": over, "send": over, "rises": True}


@pytest.mark.parametrize("partitions", [0, 3])
def test_from_topic_to_topic(play, server, topics, partitions):
    target = topics()
    if partitions:
        url = f"{server.http_url}/admin/v2/persistent/public/default/{target}/partitions"
        assert httpx.put(url, json=partitions).status_code == 204
    seen = play("process", to=target, count=20)
    assert seen == {"found": numbered(0, 20), "more": False, "left": []}


def test_readers_end_where_it_begins(play):
    seen = play("read")
    assert seen == {"available": [True, False, True, False], "found": ["0", "1"]}


@pytest.mark.heavy  # Java asks for a minute; Go hears it at once
def test_they_may_be_off(java, topic):
    with standalone(pulsar_port=0, broker={"transaction_coordinator_enabled": False}) as made:
        url = made.pulsar_url
        with pytest.raises(SceneError, match="Transactions are not enabled"):
            java.play("transactions.ended", url, topic, transactions=True, patience=5)
