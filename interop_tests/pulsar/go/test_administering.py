"""Apache's admin library for Go, of which pulsarctl is made, against this server."""

import pytest

pytestmark = [pytest.mark.go, pytest.mark.timeout(120)]


@pytest.fixture
def administer(play, server):
    return lambda scene: play(f"admin.{scene}", http=server.http_url)


def test_tenants_and_namespaces(administer, topic):
    assert administer("tenants") == {
        "tenant": {"adminRoles": ["two"], "allowedClusters": ["standalone"]},
        "listed": True,
        "namespaces": [f"{topic}-tenant/space"],
        "ttl": 60,
        "retention": {"retentionTimeInMinutes": 10, "retentionSizeInMB": 20},
        "topics": 0,
        "permissions": {"writer": ["produce"]},
    }


def test_topics(administer, topic):
    assert administer("topics") == {
        "partitions": 4,
        "properties": {"owner": "me"},
        "stored": True,
        "publishers": 1,
        "entries": 3,
        "ledgers": 1,
        "parts": 4,
        "last": 2,
        "broker": True,
        "bundle": "0x00000000_0xffffffff",
        "listed": [True, True],
        "end": 2,
        "gone": f"code: 404 reason: topic persistent://public/default/{topic} does not exist",
    }


def test_policies(administer):
    assert administer("policies") == {
        "ttl": 30,
        "producers": 3,
        "rate": 100,
        "dispatch": 50,
        "retention": 6,
        "dedup": True,
        "compaction": 1 << 20,
        "delays": 2_000,
        "quota": 1 << 20,
        "removed": [-1, -1],  # as the library says that there is none
    }


def test_subscriptions(administer):
    assert administer("subscriptions") == {
        "names": ["s"],
        "at first": 5,
        "peeked": ["0", "1"],
        "skipped": 3,
        "by id": "4",
        "reset": 4,
        "to a time": 5,
        "cleared": 0,
        "left": 0,
    }


def test_schemas(administer):
    assert administer("schemas") == {
        "type": "AVRO",
        "version": 0,
        "by one": True,
        "all": 1,
        "which": 0,
        "may come": True,
        "gone": "code: 404 reason: Schema not found",
    }


def test_brokers(administer):
    assert administer("brokers") == {
        "brokers": 1,
        "leader": True,
        "owned": True,
        "settings": True,
        "dynamic": 0,
        "clusters": True,
        "metrics": True,
        "report": True,
    }


def test_refusals(administer):
    reasons = {
        "offload": "ledgers are not offloaded by this server yet",
        "dynamic": "settings are changed in the configuration file, not while the server runs",
        "functions": "functions and connectors are not part of this server",
        "quotas": "resource quotas are not part of this server",
    }
    expected = {name: f"code: 405 reason: {reason}" for name, reason in reasons.items()}
    missing = "code: 404 reason: tenant missing does not exist"
    assert administer("refused") == {**expected, "missing": missing}
