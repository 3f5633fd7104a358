"""StreamNative's command line `pulsarctl`, in all of its verbs that make sense here.

It has to be on the PATH (`go install github.com/streamnative/pulsarctl@latest`, or `go build` in
its checkout): too much to compile for each run of the tests, so this one is `heavy`.
"""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

pytestmark = [pytest.mark.heavy, pytest.mark.go, pytest.mark.timeout(300)]

FAILED = "[\N{HEAVY MULTIPLICATION X}]"
SCHEMA = {
    "type": "AVRO",
    "schema": '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}',
    "properties": {},
}
BUNDLE = "0x00000000_0xffffffff"
WORKS = """
status check
brokers list standalone
brokers list-dynamic-config
brokers get-all-dynamic-config
brokers get-internal-config
brokers get-runtime-config
brokers healthcheck
brokers namespaces standalone --url ADDRESS
broker-stats load-report
broker-stats mbeans
broker-stats monitoring-metrics
broker-stats topics
clusters list
clusters get standalone
clusters add other --url http://other:8080
clusters update other --url http://other:8081
clusters get-peer-clusters standalone
clusters update-peer-clusters standalone --peer-cluster other
clusters list-failure-domains standalone
clusters delete other
tenants list
tenants create TENANT --allowed-clusters standalone
tenants update TENANT --admin-roles r
tenants get TENANT
namespaces create TENANT/n
namespaces list TENANT
namespaces policies TENANT/n
namespaces topics public/default
namespaces permissions TENANT/n
namespaces grant-permission TENANT/n --role r --actions produce
namespaces revoke-permission TENANT/n --role r
namespaces grant-subscription-permission TENANT/n --role r s
namespaces revoke-subscription-permission TENANT/n --role r s
namespaces set-message-ttl TENANT/n -t 10
namespaces get-message-ttl TENANT/n
namespaces set-retention TENANT/n --size 100M --time 10m
namespaces get-retention TENANT/n
namespaces set-backlog-quota TENANT/n --limit-size 10M --policy producer_exception
namespaces get-backlog-quotas TENANT/n
namespaces remove-backlog-quota TENANT/n
namespaces set-topic-auto-creation TENANT/n --disable
namespaces remove-topic-auto-creation TENANT/n
namespaces set-persistence TENANT/n --ensemble-size 1 --write-quorum-size 1 \
    --ack-quorum-size 1 --ml-mark-delete-max-rate 1
namespaces get-persistence TENANT/n
namespaces set-deduplication TENANT/n --enable
namespaces set-schema-validation-enforced TENANT/n
namespaces get-schema-validation-enforced TENANT/n
namespaces set-schema-autoupdate-strategy TENANT/n --compatibility Full
namespaces get-schema-autoupdate-strategy TENANT/n
namespaces set-is-allow-auto-update-schema TENANT/n --enable
namespaces get-is-allow-auto-update-schema TENANT/n
namespaces set-compaction-threshold TENANT/n --size 10M
namespaces get-compaction-threshold TENANT/n
namespaces set-max-consumers-per-subscription TENANT/n --size 10
namespaces get-max-consumers-per-subscription TENANT/n
namespaces set-max-consumers-per-topic TENANT/n --size 10
namespaces get-max-consumers-per-topic TENANT/n
namespaces set-max-producers-per-topic TENANT/n --size 10
namespaces get-max-producers-per-topic TENANT/n
namespaces set-dispatch-rate TENANT/n --msg-rate 10
namespaces get-dispatch-rate TENANT/n
namespaces set-publish-rate TENANT/n --msg-rate 10
namespaces get-publish-rate TENANT/n
namespaces set-subscribe-rate TENANT/n --subscribe-rate 10
namespaces get-subscribe-rate TENANT/n
namespaces set-subscription-dispatch-rate TENANT/n --msg-rate 10
namespaces get-subscription-dispatch-rate TENANT/n
namespaces set-replicator-dispatch-rate TENANT/n --msg-rate 10
namespaces get-replicator-dispatch-rate TENANT/n
namespaces set-inactive-topic-policies TENANT/n --enable-delete-while-inactive \
    --max-inactive-duration 1h --delete-mode delete_when_no_subscriptions
namespaces get-inactive-topic-policies TENANT/n
namespaces remove-inactive-topic-policies TENANT/n
namespaces set-subscription-auth-mode TENANT/n --mode Prefix
namespaces messages-encryption TENANT/n --disable
namespaces set-offload-threshold TENANT/n --size -1
namespaces get-offload-threshold TENANT/n
namespaces set-offload-deletion-lag TENANT/n --lag 1h
namespaces get-offload-deletion-lag TENANT/n
namespaces clear-offload-deletion-lag TENANT/n
namespaces set-clusters TENANT/n --clusters standalone
namespaces get-clusters TENANT/n
namespaces set-anti-affinity-group TENANT/n --group g
namespaces get-anti-affinity-group TENANT/n
namespaces get-anti-affinity-namespaces TENANT --group g --cluster standalone
namespaces delete-anti-affinity-group TENANT/n
namespaces clear-backlog TENANT/n --force
namespaces unload TENANT/n
topics create TENANT/n/p 3
topics create TENANT/n/q 0
topics list TENANT/n
topics get TENANT/n/p
topics update TENANT/n/p 4
topics lookup TOPIC
topics bundle-range TOPIC
topics stats TOPIC
topics stats TENANT/n/p --partitioned-topic
topics internal-stats TOPIC
topics internal-info TOPIC
topics last-message-id TOPIC
topics compact TOPIC
topics compact-status TOPIC --wait
topics offload TOPIC 10M
topics offload-status TOPIC
topics get-permissions TOPIC
topics grant-permissions TOPIC --role r --actions produce
topics revoke-permissions TOPIC --role r
topics set-message-ttl TOPIC -t 10
topics get-message-ttl TOPIC
topics remove-message-ttl TOPIC
topics set-max-producers TOPIC -p 5
topics get-max-producers TOPIC
topics remove-max-producers TOPIC
topics set-max-consumers TOPIC -c 5
topics get-max-consumers TOPIC
topics remove-max-consumers TOPIC
topics set-max-unacked-messages-per-consumer TOPIC -m 5
topics get-max-unacked-messages-per-consumer TOPIC
topics remove-max-unacked-messages-per-consumer TOPIC
topics set-max-unacked-messages-per-subscription TOPIC -m 5
topics get-max-unacked-messages-per-subscription TOPIC
topics remove-max-unacked-messages-per-subscription TOPIC
topics set-persistence TOPIC -e 1 -w 1 -a 1 -r 1
topics get-persistence TOPIC
topics remove-persistence TOPIC
topics set-delayed-delivery TOPIC --enable --time 1s
topics get-delayed-delivery TOPIC
topics remove-delayed-delivery TOPIC
topics set-dispatch-rate TOPIC --msg-dispatch-rate 100
topics get-dispatch-rate TOPIC
topics remove-dispatch-rate TOPIC
topics set-publish-rate TOPIC --msg-publish-rate 100
topics get-publish-rate TOPIC
topics remove-publish-rate TOPIC
topics set-subscription-dispatch-rate TOPIC --msg-dispatch-rate 100
topics get-subscription-dispatch-rate TOPIC
topics remove-subscription-dispatch-rate TOPIC
topics set-deduplication TOPIC --enable
topics get-deduplication TOPIC
topics remove-deduplication TOPIC
topics set-retention TOPIC --size 100M --time 10m
topics get-retention TOPIC
topics set-backlog-quota TOPIC --limit-size 10M --policy producer_exception
topics get-backlog-quotas TOPIC
topics remove-backlog-quota TOPIC
topics remove-retention TOPIC
topics set-compaction-threshold TOPIC --threshold 100
topics get-compaction-threshold TOPIC
topics remove-compaction-threshold TOPIC
topics set-inactive-topic-policies TOPIC -e=true -t 1h -m delete_when_no_subscriptions
topics get-inactive-topic-policies TOPIC
topics remove-inactive-topic-policies TOPIC
subscriptions create TOPIC s2 --messageId earliest
subscriptions list TOPIC
subscriptions peek TOPIC s2 --count 2
subscriptions get-message-by-id TOPIC --ledger-id LEDGER --entry-id 0
subscriptions skip TOPIC s2 --count 1
subscriptions seek TOPIC s2 --time 1m
subscriptions seek TOPIC s2 --message-id LEDGER:1
subscriptions expire TOPIC s2 --expire-time 1
subscriptions delete TOPIC s2
schemas upload TENANT/n/q -f SCHEMA
schemas get TENANT/n/q
schemas get TENANT/n/q --version 0
schemas delete TENANT/n/q
ns-isolation-policy list standalone
ns-isolation-policy brokers standalone
ns-isolation-policy broker standalone ADDRESS
topics terminate TOPIC
topics unload TENANT/n/q
topics delete TENANT/n/q --non-partitioned
topics delete TENANT/n/p
namespaces delete TENANT/n
tenants delete TENANT
"""
REFUSED = {
    "brokers update-dynamic-config --config a --value 1": "not while the server runs",
    "brokers delete-dynamic-config --config a": "not while the server runs",
    "broker-stats allocator-stats default": "there is no allocator",
    "clusters create-failure-domain standalone d --brokers b": "this cluster has one broker",
    "clusters get-failure-domain standalone d": "this cluster has one broker",
    "clusters delete-failure-domain standalone d": "this cluster has one broker",
    f"namespaces split-bundle public/default --bundle {BUNDLE}": "a namespace is one bundle",
    "namespaces unsubscribe public/default nothing": "no topic has a subscription nothing",
    "resource-quotas get": "resource quotas are not part of this server",
    "ns-isolation-policy get standalone p": "this cluster has one broker",
    "ns-isolation-policy delete standalone p": "this cluster has one broker",
    "functions list": "functions and connectors are not part of this server",
    "sinks list": "functions and connectors are not part of this server",
    "sources list": "functions and connectors are not part of this server",
    "packages list --type function public/default": "are not part of this server",
}


@pytest.fixture
def ctl(server, tmp_path):
    """Runs a command; returns whether it succeeded, and what it printed."""
    program = shutil.which("pulsarctl")
    assert program is not None, "pulsarctl is not on the PATH: see the head of this file"

    def run(*words: str) -> tuple[bool, str]:
        command = [program, *words, "-s", server.http_url, "-C", "false"]
        home = {"HOME": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=home)
        output = done.stdout + done.stderr
        return done.returncode == 0 and FAILED not in output, output

    return run


def test_each_verb(ctl, server, client, topic, tmp_path) -> None:
    producer = client.create_producer(topic)
    ids = [producer.send(b"value", partition_key=f"k{number % 2}") for number in range(5)]
    producer.close()
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA))
    words = {
        "TOPIC": f"persistent://public/default/{topic}",
        "TENANT": f"{topic}-tenant",
        "ADDRESS": server.http_url.removeprefix("http://"),
        "LEDGER": str(ids[0].ledger_id()),
        "SCHEMA": str(schema),
    }

    def said(command: str) -> tuple[bool, str]:
        for word, meaning in words.items():
            command = command.replace(word, meaning)
        return ctl(*command.split())

    failed = {}
    for command, reason in REFUSED.items():
        succeeded, output = said(command)
        if succeeded or reason not in output:
            failed[command] = output
    for command in WORKS.strip().splitlines():
        succeeded, output = said(command)
        if not succeeded:
            failed[command] = output
    assert failed == {}, "\n".join(map(str, failed.items()))
