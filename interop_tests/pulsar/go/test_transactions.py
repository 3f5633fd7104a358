"""What Apache's client for Go sees of transactions; the scenes are in transacting.go."""

import httpx
import pytest

from magnetar import standalone

pytestmark = [pytest.mark.go, pytest.mark.timeout(180)]
NUMBERS = ["0", "1", "2"]


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("kind", ["Shared", "Exclusive"])
def test_messages_and_acknowledgements_together(play, kind, commit):
    batched = kind == "Shared"
    seen = play("transactions.end", type=kind, commit=commit, batched=batched)
    early, late, again = seen
    assert early == []
    assert (late, sorted(again)) == ((NUMBERS, []) if commit else ([], NUMBERS))


def test_one_message_in_two(play):
    assert "TransactionConflict" in play("transactions.conflict")


@pytest.mark.parametrize("commit", [True, False])
def test_messages_of_a_batch(play, commit):
    assert play("transactions.batch", commit=commit) == (["0", "2"] if commit else [*NUMBERS, "3"])


@pytest.mark.parametrize("commit", [True, False])
def test_chunks(play, commit):
    assert play("transactions.chunks", commit=commit) == [0, [4500] if commit else []]


@pytest.mark.parametrize("commit", [True, False])
def test_nothing_in_it(play, commit):
    assert play("transactions.empty", commit=commit) is True


def test_what_tools_show_of_it(pulsar_go, server, topic):
    playing = pulsar_go.start("transactions.open", server.pulsar_url, topic, commit=True)
    most, least = playing.wait_for("open")
    url = f"{server.http_url}/admin/v3/transactions/transactionMetadata/{most}/{least}"
    found = httpx.get(url).json()
    name = f"persistent://public/default/{topic}"
    assert found["status"] == "OPEN"
    assert list(found["producedPartitions"]) == [name]
    assert found["ackedPartitions"][name] == {"s": {"cumulativeAckPosition": None}}
    playing.tell("end")
    assert playing.result() is True
    assert httpx.get(url).status_code == 404


def test_they_may_be_off(pulsar_go, topic):
    with standalone(broker={"transaction_coordinator_enabled": False}) as made:
        error = pulsar_go.play("transactions.off", made.pulsar_url, topic)
    assert "Transactions are not enabled" in error
