"""What Apache's client for Go sees of transactions; the scenes are in transacting.go."""

import httpx
import pulsar
import pytest

from interop_tests.raw import Raw
from interop_tests.waiting import until
from magnetar import standalone
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

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


@pytest.mark.slow
def test_below_the_low_water_mark_all_is_over(pulsar_go, topic):
    """Also after a kill, which the transaction survives in which something was done."""
    refused = (pb.NotAllowedError, pb.TransactionNotFound)
    with standalone() as server:
        playing = pulsar_go.start("transactions.open", server.pulsar_url, topic, commit=True)
        most, least = playing.wait_for("open")

        def coordinator() -> dict[str, object]:
            asked = {"coordinatorId": most}
            url = f"{server.http_url}/admin/v3/transactions/coordinatorStats"
            return httpx.get(url, params=asked).raise_for_status().json()

        with Raw(server).introduce() as other:
            begun = other.ask(peer.new_txn(1, coordinator=most)).body
            later = begun.txnid_most_bits, begun.txnid_least_bits
            assert not other.ask(peer.add_partitions(2, later, topic)).body.error
        assert later[1] > least
        before = coordinator()
        assert before["lowWaterMark"] == least - 1
        server.kill()
        server.start()
        assert coordinator() == before

        playing.tell("end")
        assert playing.result() is True
        until(lambda: coordinator()["lowWaterMark"] == later[1] - 1)
        over = most, least
        with Raw(server).introduce() as other:
            assert other.ask(peer.producer(1, 1, topic)).kind == "PRODUCER_SUCCESS"
            assert other.ask(peer.subscribe(2, 1, topic, "other")).kind == "SUCCESS"
            assert other.ask(peer.send_in(over, 1, 0, b"late")).body.error in refused
            assert other.ask(peer.ack_in(over, 3, 1, peer.message_id(0, 0))).body.error in refused
            assert other.ask(peer.add_partitions(4, over, topic)).body.error in refused
            assert other.ask(peer.end_txn(5, over, commit=False)).body.error in refused
            assert other.ask(peer.send_in(later, 1, 0, b"open")).kind == "SEND_RECEIPT"
            assert not other.ask(peer.end_txn(6, later)).body.error
        assert coordinator()["lowWaterMark"] == -1
        client = pulsar.Client(server.pulsar_url)
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        found = [reader.read_next(5_000).data() for _ in range(3)]
        assert (found, reader.has_message_available()) == ([b"0", b"1", b"open"], False)
        client.close()
