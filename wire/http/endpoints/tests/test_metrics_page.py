"""/metrics, read by Prometheus' own parser."""

import msgspec
import pytest
import trio
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from magnetar.core.broker import rate_sampler
from magnetar.core.entry.pulsar import form
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import settled
from magnetar.core.testing.entries import part
from magnetar.core.testing.turns import counted_turns
from magnetar.core.transactions.topic_transactions import TopicTransactions
from magnetar.wire.http.endpoints.metrics_page import TOPICS_PER_REST
from magnetar.wire.http.metrics.names import LATENCIES
from magnetar.wire.http.tests.visitor import OPTIONS, Visitor, visiting

TOPIC = {
    "cluster": "standalone",
    "namespace": "public/default",
    "topic": "persistent://public/default/a",
}


async def read(visitor: Visitor) -> dict[str, dict[str, float]]:
    """Values by metric and by the labels that vary."""
    answer = await visitor.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            labels = sample.labels
            key = (
                labels.get("subscription")
                or labels.get("topic")
                or labels.get("coordinator_id", "")
            )
            found.setdefault(sample.name, {})[key] = sample.value
    return found


async def test_what_comes_in_and_waits_is_told(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    await topic.subscription("s")
    await visitor.publish("a", [b"0123456789"] * 20)
    await rate_sampler.go_round([topic], visitor.broker.clock.wall_ms() + 10_000)
    found = await read(visitor)
    name = TOPIC["topic"]
    assert found["pulsar_in_messages_total"] == {name: 20}
    assert found["pulsar_in_bytes_total"] == {name: 200}
    assert 1.9 < found["pulsar_rate_in"][name] <= 2
    assert found["pulsar_msg_backlog"] == {name: 20}
    assert found["pulsar_subscription_back_log"] == {"s": 20}
    assert found["pulsar_storage_size"][name] > 200
    assert found["pulsar_topics_count"] == {"": 1}
    assert found["magnetar_ready"] == {"": 1}
    assert (await read(visitor))["magnetar_http_pause_seconds_max"][""] > 0, "of the request before"


async def test_transactions_are_told(visitor: Visitor) -> None:
    services = visitor.services
    transactions = TopicTransactions(visitor.broker, form)
    services.options = replace(services.options, transactions=transactions)
    topic = await visitor.topic("a")
    await visitor.topic("plain")
    kept = []
    for commit in (True, False, None):
        key = await transactions.begin(2, 60_000, "me")
        await transactions.add_topics(key, ["a"], lambda _owner: True)
        topic.publish([part(key)], None, topic.in_transaction(key, lambda _result: None))
        await settled()
        if commit is None:
            kept.append(key)
        else:
            await transactions.end(key, lambda _owner: True, commit=commit)
    found = await read(visitor)
    name = TOPIC["topic"]
    assert found["pulsar_txn_tb_active_total"] == {name: 1}, "not of a topic without any"
    assert found["pulsar_txn_tb_aborted_total"] == {name: 1}
    assert found["pulsar_txn_tb_committed_total"] == {name: 1}
    told = {
        "active_count": 1, "created_total": 3, "committed_total": 1, "aborted_total": 1,
        "timeout_total": 0,
    }  # fmt: skip
    for what, count in told.items():
        of_each = found[f"pulsar_txn_{what}"]
        assert of_each == {str(number): count if number == 2 else 0 for number in range(16)}
    await transactions.end(kept[0], lambda _owner: True, commit=True)
    found = await read(visitor)
    assert found["pulsar_txn_active_count"]["2"] == 0
    assert found["pulsar_txn_committed_total"]["2"] == 2


async def test_topics_that_store_nothing_are_told_too(visitor: Visitor) -> None:
    await visitor.broker.topic(TopicName.parse("non-persistent://public/default/v"))
    found = await read(visitor)
    assert found["pulsar_producers_count"] == {"non-persistent://public/default/v": 0}
    assert "pulsar_storage_size" not in found


async def test_the_broker_is_the_sum_of_its_topics(visitor: Visitor) -> None:
    for name in ("a", "b"):
        topic = await visitor.topic(name)
        await topic.subscription("s")
        await visitor.publish(name, [b"0123456789"] * 3)
    found = await read(visitor)
    assert found["pulsar_broker_topics_count"] == {"": 2}
    assert found["pulsar_broker_subscriptions_count"] == {"": 2}
    assert found["pulsar_broker_msg_backlog"] == {"": 6}
    assert found["pulsar_broker_storage_size"][""] == sum(found["pulsar_storage_size"].values())


async def test_quotas_and_what_expired_are_told(visitor: Visitor) -> None:
    policies = "/admin/v2/namespaces/public/default"
    await visitor.does(
        "POST", f"{policies}/backlogQuota", {"limitSize": 99, "policy": "producer_request_hold"}
    )
    topic = await visitor.topic("a")
    subscription = await topic.subscription("s")
    await visitor.publish("a", [b"0123456789"] * 3)
    subscription.expire_to((0, 1))
    found = await read(visitor)
    name = TOPIC["topic"]
    assert found["pulsar_storage_backlog_quota_limit"] == {name: 99}
    assert found["pulsar_storage_backlog_quota_limit_time"] == {name: -1}
    assert found["pulsar_subscription_total_msg_expired"] == {"s": 2}
    assert found["pulsar_subscription_last_expire_timestamp"]["s"] > 1_600_000_000_000
    assert found["pulsar_subscription_back_log_no_delayed"] == {"s": 1}


async def test_others_have_their_turn_while_it_is_gathered_and_sent(visitor: Visitor) -> None:
    topics = 10 * TOPICS_PER_REST
    for number in range(topics):
        await visitor.topic(f"many-{number}")
    for path in ("/metrics", "/admin/v2/broker-stats/topics", "/admin/v2/broker-stats/metrics"):
        async with counted_turns() as turns:
            assert (await visitor.ask("GET", path)).status_code == 200
            assert turns.count >= topics // TOPICS_PER_REST // 2, path


async def test_what_storage_took_is_told_in_pulsars_buckets(visitor: Visitor) -> None:
    await visitor.topic("idle")
    await visitor.publish("a", [b"x" * 100, b"x" * 600, b"x" * 2_000_000])
    found = await read(visitor)
    name = TOPIC["topic"]
    for end, count in (("le_128", 1), ("le_512", 0), ("le_1_kb", 1), ("le_overflow", 1)):
        assert found[f"pulsar_entry_size_{end}"] == {name: count}
    assert found["pulsar_entry_size_count"] == {name: 3}
    assert found["pulsar_entry_size_sum"] == {name: 2_000_700}
    for kind in ("storage_write_latency", "storage_ledger_write_latency"):
        buckets = [found[f"pulsar_{kind}_{end}"][name] for end in LATENCIES]
        assert sum(buckets) == found[f"pulsar_{kind}_count"][name] == 3
        assert found[f"pulsar_{kind}_sum"][name] > 0


async def test_entries_are_what_is_stored_per_second(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    stored = trio.Event()
    topic.publish([b"batch"], [100], lambda _result: stored.set())
    await stored.wait()
    await rate_sampler.go_round([topic], visitor.broker.clock.wall_ms() + 10_000)
    found = await read(visitor)
    name = TOPIC["topic"]
    assert found["pulsar_storage_write_rate"][name] == pytest.approx(0.1, rel=0.01)
    assert found["pulsar_rate_in"][name] == pytest.approx(10, rel=0.01)


async def test_the_slash_at_the_end_is_not_redirected(visitor: Visitor) -> None:
    assert (await visitor.ask("GET", "/metrics/")).status_code == 200
    assert (await visitor.ask("HEAD", "/metrics")).status_code == 200


async def test_a_server_that_takes_no_writes_is_seen() -> None:
    options = msgspec.structs.replace(OPTIONS, readiness=lambda: "the disk is full")
    async with visiting(options) as visitor:
        assert (await read(visitor))["magnetar_ready"] == {"": 0}


async def test_what_counts_against_rates_of_resource_groups(visitor: Visitor) -> None:
    rates = {"publishRateInMsgs": 5, "dispatchRateInMsgs": 5}
    await visitor.does("PUT", "/admin/v2/resourcegroups/g", rates)
    await visitor.does("POST", "/admin/v2/namespaces/public/default/resourcegroup/g")
    topic = await visitor.topic("a")
    assert "resource_group" not in (await visitor.ask("GET", "/metrics")).text
    topic.throttles.publish[0].spend(3, 30)
    topic.throttles.dispatch[0].spend(2, 20)
    text = (await visitor.ask("GET", "/metrics")).text
    found = {
        (sample.name, sample.labels["MonitoringClass"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("ResourceGroup") == "g"
    }
    used = "pulsar_resource_group_{}_used_total"
    assert found == {
        (used.format("messages"), "Publish"): 3,
        (used.format("messages"), "Dispatch"): 2,
        (used.format("bytes"), "Publish"): 30,
        (used.format("bytes"), "Dispatch"): 20,
    }
