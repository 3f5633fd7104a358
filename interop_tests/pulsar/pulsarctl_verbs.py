"""A command line for each verb of `pulsarctl`, in an order in which they can be tried.

Some verbs have more than one line. What a verb does here is in the table of docs/admin.md
("pulsarctl, verb by verb"). `bookkeeper` asks a bookie: `bookkeeper/test_pulsarctl.py` tries it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from interop_tests.pulsar.verb_table import Table

TENANT: Final = "ctl"
N: Final = "ctl/verbs"
T: Final = "persistent://ctl/verbs/t"
P: Final = "persistent://ctl/verbs/p"
BUNDLE: Final = "0x00000000_0xffffffff"
RATE: Final = "--msg-rate 10"
TOPIC_RATE: Final = "--msg-dispatch-rate 100"
INACTIVE: Final = "--max-inactive-duration 1h --delete-mode delete_when_no_subscriptions"
SET_OF_NAMESPACES: Final = {
    "message-ttl": "-t 10",
    "retention": "--size 100M --time 10m",
    "backlog-quota": "--limit-size 10M --policy producer_exception",
    "topic-auto-creation": "--disable",
    "persistence": "--ensemble-size 1 --write-quorum-size 1 --ack-quorum-size 1 "
    "--ml-mark-delete-max-rate 2",
    "deduplication": "--enable",
    "schema-validation-enforced": "",
    "schema-autoupdate-strategy": "--compatibility Forward",
    "is-allow-auto-update-schema": "--disable",
    "compaction-threshold": "--size 10M",
    "max-consumers-per-subscription": "--size 10",
    "max-consumers-per-topic": "--size 10",
    "max-producers-per-topic": "--size 10",
    "dispatch-rate": RATE,
    "publish-rate": RATE,
    "subscribe-rate": "--subscribe-rate 10",
    "subscription-dispatch-rate": RATE,
    "replicator-dispatch-rate": RATE,
    "inactive-topic-policies": f"--enable-delete-while-inactive {INACTIVE}",
    "subscription-auth-mode": "--mode Prefix",
    "offload-threshold": "--size 10M",
    "offload-deletion-lag": "--lag 1h",
    "anti-affinity-group": "--group g",
}
"""Options of `set-NAME` of namespaces; most of them have a `get-NAME`, some a `remove-NAME`."""
SET_OF_TOPICS: Final = {
    "message-ttl": "-t 10",
    "max-producers": "-p 5",
    "max-consumers": "-c 5",
    "max-unacked-messages-per-consumer": "-m 5",
    "max-unacked-messages-per-subscription": "-m 5",
    "persistence": "-e 1 -w 1 -a 1 -r 2",
    "delayed-delivery": "--enable --time 2s",
    "dispatch-rate": TOPIC_RATE,
    "publish-rate": "--msg-publish-rate 100",
    "subscription-dispatch-rate": TOPIC_RATE,
    "deduplication": "--enable",
    "retention": "--size 100M --time 10m",
    "backlog-quota": "--limit-size 10M --policy producer_exception",
    "compaction-threshold": "--threshold 100",
    "inactive-topic-policies": "-e=true -t 1h -m delete_when_no_subscriptions",
}
FUNCTION: Final = "--tenant public --namespace default --name f"
RUNS: Final = (
    f"get {FUNCTION}",
    "list --tenant public --namespace default",
    f"status {FUNCTION}",
    f"start {FUNCTION}",
    f"stop {FUNCTION}",
    f"restart {FUNCTION}",
    f"delete {FUNCTION}",
)
"""What functions, sinks and sources have in common."""
PACKAGE: Final = "function://public/default/p@v1"
OTHERS: Final = {
    "status": ("check",),
    "brokers": (
        "list standalone",
        "namespaces standalone --url {broker}",
        "get-all-dynamic-config",
        "get-internal-config",
        "get-runtime-config",
        "list-dynamic-config",
        "update-dynamic-config --config a --value 1",
        "delete-dynamic-config --config a",
        "healthcheck",
    ),
    "broker-stats": (
        "load-report",
        "mbeans",
        "monitoring-metrics",
        "topics",
        "allocator-stats default",
    ),
    "clusters": (
        "list",
        "get standalone",
        "add other --url http://other:8080",
        "update other --url http://other:8081",
        "update-peer-clusters standalone --peer-cluster other",
        "get-peer-clusters standalone",
        "list-failure-domains standalone",
        "create-failure-domain standalone d --brokers b",
        "update-failure-domain standalone d --broker-list b",
        "get-failure-domain standalone d",
        "delete-failure-domain standalone d",
    ),
    "tenants": (
        "list",
        f"update {TENANT} --admin-roles r",
        f"get {TENANT}",
    ),
    "schemas": (
        f"upload {N}/q -f {{schema}}",
        f"get {N}/q",
        f"get {N}/q --version 0",
        f"delete {N}/q",
    ),
    "namespaces": (
        f"list {TENANT}",
        f"topics {N}",
        f"policies {N}",
        f"permissions {N}",
        f"grant-permission {N} --role r --actions produce",
        f"revoke-permission {N} --role r",
        f"grant-subscription-permission {N} --role r s",
        f"revoke-subscription-permission {N} --role r s",
        f"messages-encryption {N} --disable",
        f"set-clusters {N} --clusters standalone",
        f"get-clusters {N}",
        f"get-anti-affinity-namespaces {TENANT} --group g --cluster standalone",
        f"split-bundle {N} --bundle {BUNDLE}",
    ),
    "topics": (
        f"create {P} 3",
        f"create {N}/q 0",
        f"list {N}",
        f"get {P}",
        f"update {P} 4",
        f"lookup {T}",
        f"bundle-range {T}",
        f"stats {T}",
        f"stats {P} --partitioned-topic",
        f"internal-stats {T}",
        f"internal-info {T}",
        f"last-message-id {T}",
        f"compact {T}",
        f"compact-status {T} --wait",
        f"offload {T} 0",
        f"offload-status {T}",
        f"grant-permissions {T} --role r --actions produce",
        f"get-permissions {T}",
        f"revoke-permissions {T} --role r",
    ),
    "subscriptions": (
        f"create {T} s --messageId earliest",
        f"list {T}",
        f"peek {T} s --count 2",
        f"get-message-by-id {T} --ledger-id {{ledger}} --entry-id 0",
        f"skip {T} s --count 1",
        f"seek {T} s --time 1m",
        f"seek {T} s --message-id {{ledger}}:1",
        f"expire {T} s --expire-time 1",
        f"expire {T} --all --expire-time 1",
        f"delete {T} s",
    ),
    "ns-isolation-policy": (
        "list standalone",
        "brokers standalone",
        "broker standalone {broker}",
        "set standalone p --namespaces n --primary b --secondary c "
        "--auto-failover-policy-type min_available "
        "--auto-failover-policy-params min_limit=1,usage_threshold=80",
        "get standalone p",
        "delete standalone p",
    ),
    "resource-quotas": (
        "get",
        f"set --namespace {N} --bundle {BUNDLE} --msgRateIn 1 --msgRateOut 1 --bandwidthIn 1 "
        "--bandwidthOut 1 --memory 1",
        f"reset {N} {BUNDLE}",
    ),
    "functions": (
        f"create {FUNCTION} --inputs i --output o --classname c --jar {{file}}",
        f"update {FUNCTION} --output o --jar {{file}}",
        *RUNS,
        f"stats {FUNCTION}",
        f"putstate {FUNCTION} k - v",
        f"querystate {FUNCTION} --key k",
        f"trigger {FUNCTION} --topic t --trigger-value v",
        "upload --source-file {file} --path public/default/f",
        "download --destination-file {folder}/f --path public/default/f",
    ),
    "functions-worker": (
        "function-stats",
        "get-cluster",
        "get-cluster-leader",
        "get-function-assignments",
        "monitoring-metrics",
    ),
    "sinks": (
        f"create {FUNCTION} --inputs i --archive {{file}}",
        f"update {FUNCTION} --inputs i --archive {{file}}",
        "available-sinks",
        *RUNS,
    ),
    "sources": (
        f"create {FUNCTION} --destination-topic-name o --archive {{file}}",
        f"update {FUNCTION} --destination-topic-name o --archive {{file}}",
        "available-sources",
        *RUNS,
    ),
    "packages": (
        "list --type function public/default",
        "list-versions function://public/default/p",
        f"upload {PACKAGE} --path {{file}} --description d",
        f"download {PACKAGE} --path {{folder}}/p",
        f"get-metadata {PACKAGE}",
        f"update-metadata {PACKAGE} --description d",
        f"delete {PACKAGE}",
    ),
    "token": (
        "create-secret-key --output-file {folder}/secret",
        "create -a HS256 --secret-key-file {folder}/secret --subject me",
        "create-key-pair --output-private-key {folder}/private --output-public-key {folder}/public",
        "show --token-string {token}",
        f"validate -a HS256 --token-string {{token}} --secret-key-string {'x' * 32}",
    ),
    "context": (
        "set spare --admin-service-url http://spare:8080",
        "rename spare other",
        "use here",
        "current",
        "get",
        "delete other",
    ),
    "completion": ("bash", "zsh", "fish"),
    "plugin": ("list",),
}
ARRIVING: Final = (
    f"tenants create {TENANT} --allowed-clusters standalone",
    f"namespaces create {N}",
)
LEAVING: Final = (
    f"namespaces clear-backlog {N} --force",
    f"subscriptions create {T} other",
    f"namespaces unsubscribe {N} other",
    f"topics terminate {T}",
    f"topics unload {T}",
    f"topics delete {T} --non-partitioned",
    f"topics delete {N}/q --non-partitioned",
    f"topics delete {P}",
    f"namespaces unload {N}",
    f"namespaces delete {N}",
    f"tenants delete {TENANT}",
    "clusters delete other",
)
BOOKKEEPER: Final = {
    "bookkeeper bookie": (
        "state",
        "set-readonly true",
        "set-readonly false",
        "list-disk-file journal",
        "last-log-marker",
        "gc",
        "gc-status",
        "gc-details",
        "expand-storage",
    ),
    "bookkeeper ledger": ("list", "get {ledger}", "read {ledger}", "delete {ledger}"),
    "bookkeeper auto-recovery": (
        "who-is-auditor",
        "set-lost-bookie-recovery-delay 60",
        "get-lost-bookie-recovery-delay",
        "list-under-replicated-ledger",
        "trigger-audit",
        "recover-bookie {bookie}",
        "decommission {bookie}",
    ),
}
OUTSIDE: Final = {"oauth2": {"activate", "login"}}
"""They ask an identity provider, not this server."""


class PolicyLines(NamedTuple):
    """How a policy is shown, set, and removed where there is a verb for that."""

    show: str
    set: str
    remove: str | None


def commands() -> Iterator[str]:
    """All lines that do not concern policies, but the last ones."""
    yield from _lines(OTHERS)


def bookkeeper() -> Iterator[str]:
    yield from _lines(BOOKKEEPER)


def _lines(groups: dict[str, tuple[str, ...]]) -> Iterator[str]:
    for group, lines in groups.items():
        yield from (f"{group} {line}" for line in lines)


def policies(table: Table) -> Iterator[PolicyLines]:
    for group, on, options in ("namespaces", N, SET_OF_NAMESPACES), ("topics", T, SET_OF_TOPICS):
        for name, how in options.items():
            verbs = table[group]
            shows = [verb for verb in (f"get-{name}", f"get-{name}s", "policies") if verb in verbs]
            removes = [each for each in ("remove", "clear", "delete") if f"{each}-{name}" in verbs]
            yield PolicyLines(
                f"{group} {shows[0]} {on}",
                f"{group} set-{name} {on} {how}",
                f"{group} {removes[0]}-{name} {on}" if removes else None,
            )
