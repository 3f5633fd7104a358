"""pulsar-admin, Apache's own and unmodified, against a real server.

Its jars come from Maven Central by `admin/pom.xml`. Each command is a JVM of its own, as
users run it, so a test is one story of several commands. Where it is many commands that matter,
Apache's shell runs them all in one JVM.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pulsar
import pytest

import magnetar
from interop_tests import maven

ADMIN = Path(__file__).with_name("admin")
JAVA_CLIENT = Path(__file__).with_name("java")
MAIN = "org.apache.pulsar.admin.cli.PulsarAdminTool"
SHELL = "org.apache.pulsar.shell.PulsarShell"
SHELL_SECONDS = 240
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
EXECUTING = re.compile(r"\[\d+/\d+\] Executing admin (.*)$", re.MULTILINE)
PROGRESS = re.compile(r"^\[\d+/\d+\] [^E].*$", re.MULTILINE)
JAVA = ("java", "-Xmx128m", "-XX:TieredStopAtLevel=1")
"""Small, and quick to start: it runs once per command."""
COMMAND_SECONDS = 60

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def jars() -> Path:
    """The tool's class path."""
    return maven.build(ADMIN) / "jars"


class Admin:
    """One command after the other."""

    def __init__(self, jars: Path, conf: Path, server: magnetar.Standalone) -> None:
        self.server = server
        self._jars = jars
        self._conf = conf
        conf.write_text(
            f"webServiceUrl={server.http_url}/\nbrokerServiceUrl={server.pulsar_url}/\n"
        )

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*JAVA, "-cp", f"{self._jars}/*", MAIN, str(self._conf), *command.split()],
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )

    def says(self, command: str) -> str:
        """What a command that succeeds prints."""
        done = self.run(command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout.strip()

    def json(self, command: str) -> dict[str, object]:
        return json.loads(self.says(command))

    def shell(self, commands: Sequence[str], script: Path) -> list[str]:
        """What each of many commands prints, whether or not it succeeds."""
        script.write_text("".join(f"admin {command}\n" for command in commands))
        arguments = ["-c", str(self._conf), "-f", str(script)]
        done = subprocess.run(
            [*JAVA, "-cp", f"{self._jars}/*", SHELL, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SHELL_SECONDS,
            env={**os.environ, "HOME": str(script.parent)},
        )
        _, *parts = EXECUTING.split(COLOURS.sub("", done.stdout))
        assert parts[::2] == list(commands), done.stdout
        return [PROGRESS.sub("", part).removesuffix("Goodbye!\n").strip() for part in parts[1::2]]

    def fails(self, command: str) -> str:
        """What a command that is refused complains."""
        done = self.run(command)
        assert done.returncode != 0, (command, done.stdout)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def admin(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    with magnetar.standalone() as server:
        yield Admin(jars, tmp_path_factory.mktemp("admin") / "client.conf", server)


def publish(admin: Admin, topic: str, count: int, **options: object) -> None:
    client = pulsar.Client(
        admin.server.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    )
    producer = client.create_producer(topic, **options)
    for number in range(count):
        producer.send_async(b"message %d" % number, lambda *_: None, properties={"n": str(number)})
    producer.flush()
    client.close()


def test_tenants_and_namespaces(admin: Admin, tmp_path: Path) -> None:
    story = {
        "tenants create t --admin-roles me": "",
        "tenants get t": '"adminRoles" : [ "me" ],\n  "allowedClusters" : [ "standalone" ]',
        "tenants list": "public\npulsar\nt",
        "tenants create t": "Tenant already exists",
        "namespaces create t/n --bundles 4": "",
        "namespaces list t": "t/n",
        "namespaces policies t/n": '"replication_clusters" : [ "standalone" ]',
        "tenants delete t": "still has namespaces",
        "namespaces delete t/n": "",
        "tenants delete t ": "",
        "tenants get t ": "tenant t does not exist",
    }
    told(admin, story, tmp_path)


def told(admin: Admin, story: dict[str, str], folder: Path) -> None:
    """Each command says something with those words in it, or nothing."""
    found = admin.shell([" ".join(command.split()) for command in story], folder / "script")
    for (command, expected), shown in zip(story.items(), found, strict=True):
        assert (expected in shown) if expected else (shown == ""), (command, shown)


@pytest.mark.heavy  # test_admin_verbs.py tries each verb in one JVM
def test_policies(admin: Admin) -> None:
    admin.says("namespaces create public/policies")
    admin.says("namespaces set-retention public/policies -t 10m -s 100M")
    assert admin.json("namespaces get-retention public/policies") == {
        "retentionTimeInMinutes": 10,
        "retentionSizeInMB": 100,
    }
    assert admin.says("namespaces get-message-ttl public/policies") == "null"
    admin.says("namespaces set-message-ttl public/policies -ttl 100")
    assert admin.says("namespaces get-message-ttl public/policies") == "100"
    quota = "namespaces set-backlog-quota public/policies -p producer_exception"
    admin.says(f"{quota} -l 10M")
    assert "limitSize=10485760" in admin.says("namespaces get-backlog-quotas public/policies")
    assert "below what retention keeps" in admin.fails(f"{quota} -l 1G")
    admin.says("namespaces grant-permission public/policies --role me --actions produce,consume")
    assert admin.says("namespaces permissions public/policies").split(maxsplit=1)[0] == "me"
    admin.says("namespaces set-dispatch-rate public/policies --msg-dispatch-rate 100")
    rate = admin.json("namespaces get-dispatch-rate public/policies")
    assert rate["dispatchThrottlingRateInMsg"] == 100


def test_topics(admin: Admin, tmp_path: Path) -> None:
    topic, parted = "persistent://public/default/topics", "persistent://public/default/parted"
    story = {
        f"topics create {topic}": "",
        f"topics create {topic} ": "exists",
        f"topics create-partitioned-topic {parted} -p 2": "",
        "topics list public/default": f"{parted}-partition-0\n{parted}-partition-1\n{topic}",
        "topics list-partitioned-topics public/default": parted,
        f"topics update-partitioned-topic {parted} -p 3": "",
        f"topics get-partitioned-topic-metadata {parted}": '"partitions" : 3',
        f"topics lookup {topic}": admin.server.pulsar_url,
        f"topics bundle-range {topic}": "0x00000000_0xffffffff",
    }
    told(admin, story, tmp_path)
    publish(admin, parted, 10)
    stats = admin.json(f"topics partitioned-stats {parted} --per-partition")
    assert stats["msgInCounter"] == 10
    assert len(stats["partitions"]) == 3
    story = {
        f"topics delete-partitioned-topic {parted}": "",
        f"topics unload {topic}": "",
        f"topics delete {topic}": "",
        "topics list-partitioned-topics public/default": "",
    }
    told(admin, story, tmp_path)


@pytest.mark.heavy  # test_admin_verbs.py tries each verb in one JVM
def test_subscriptions(admin: Admin) -> None:
    topic = "persistent://public/default/subscriptions"
    publish(admin, topic, 5, batching_enabled=False)
    admin.says(f"topics create-subscription -s s -m earliest {topic}")
    assert admin.says(f"topics subscriptions {topic}") == "s"
    assert backlog(admin, topic) == 5
    admin.says(f"topics skip -s s -n 2 {topic}")
    assert backlog(admin, topic) == 3
    admin.says(f"topics reset-cursor -s s -t 1h {topic}")
    assert backlog(admin, topic) == 5
    last = admin.json(f"topics last-message-id {topic}")
    admin.says(f"topics reset-cursor -s s -m {last['ledgerId']}:{last['entryId']} {topic}")
    assert backlog(admin, topic) == 1
    admin.says(f"topics clear-backlog -s s {topic}")
    assert backlog(admin, topic) == 0
    internal = admin.json(f"topics stats-internal {topic}")
    assert internal["cursors"]["s"]["markDeletePosition"] == internal["lastConfirmedEntry"]
    admin.says(f"topics unsubscribe -s s {topic}")
    assert admin.says(f"topics subscriptions {topic}") == ""
    assert "not found" in admin.fails(f"topics unsubscribe -s s {topic}")


def backlog(admin: Admin, topic: str) -> int:
    return admin.json(f"topics stats {topic}")["subscriptions"]["s"]["msgBacklog"]


def test_messages(admin: Admin) -> None:
    topic = "persistent://public/default/messages"
    admin.says(f"topics create {topic}")
    admin.says(f"topics create-subscription -s s {topic}")
    publish(admin, topic, 2, batching_enabled=False)
    zstd = pulsar.CompressionType.ZSTD
    publish(admin, topic, 3, batching_enabled=True, compression_type=zstd)
    peeked = admin.says(f"topics peek-messages -s s -n 5 {topic}")
    assert peeked.count("Message ID:") == 5
    assert peeked.count("Batch Message ID:") == 3
    assert "|message 0" in peeked
    assert "n    1" in peeked
    earliest = admin.says(f"topics examine-messages -i earliest -m 1 {topic}")
    assert "|message 0" in earliest
    found = admin.json(f"topics get-message-id -d 2020-01-01T00:00:00Z {topic}")
    shown = admin.says(
        f"topics get-message-by-id -l {found['ledgerId']} -e {found['entryId']} {topic}"
    )
    assert "|message 0" in shown
    assert "terminated at" in admin.says(f"topics terminate {topic}")
    client = pulsar.Client(
        admin.server.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    )
    with pytest.raises(pulsar.TopicTerminated):
        client.create_producer(topic)
    client.close()


def test_brokers(admin: Admin) -> None:
    assert admin.says("brokers healthcheck") == "ok"
    (broker,) = admin.says("brokers list standalone").split()
    assert admin.json("brokers leader-broker")["brokerId"] == broker
    assert admin.says("clusters list") == "standalone"
    assert "public/default/" in admin.says(f"brokers namespaces standalone --url {broker}")
    assert "Schema not found" in admin.fails("schemas get persistent://public/default/any")


NAMESPACE_POLICIES = (
    # name, how it is set, what is got then
    ("message-ttl", "-ttl 100", "100"),
    ("retention", "-t 10m -s 100M", '"retentionTimeInMinutes" : 10'),
    ("max-producers-per-topic", "-p 5", "5"),
    ("max-consumers-per-topic", "-c 5", "5"),
    ("max-consumers-per-subscription", "-c 5", "5"),
    ("max-subscriptions-per-topic", "-m 5", "5"),
    ("max-topics-per-namespace", "-t 5", "5"),
    ("max-unacked-messages-per-consumer", "-c 5", "5"),
    ("max-unacked-messages-per-subscription", "-c 5", "5"),
    ("subscription-expiration-time", "-t 5", "5"),
    ("subscription-types-enabled", "--types Shared,Failover", '"Shared"'),
    ("auto-topic-creation", "-e -t partitioned -n 3", '"defaultNumPartitions" : 3'),
    ("auto-subscription-creation", "-e", '"allowAutoSubscriptionCreation" : true'),
    ("inactive-topic-policies", "-e -t 100s -m delete_when_no_subscriptions", "100"),
    ("delayed-delivery", "-e -t 2s", '"tickTime" : 2000'),
    ("deduplication", "-e", "true"),
    ("dispatch-rate", "-md 100", '"dispatchThrottlingRateInMsg" : 100'),
    ("subscription-dispatch-rate", "-md 100", '"dispatchThrottlingRateInMsg" : 100'),
    ("publish-rate", "-m 100", '"publishThrottlingRateInMsg" : 100'),
    ("subscribe-rate", "-sr 10 -st 30", '"ratePeriodInSecond" : 30'),
    ("persistence", "-e 1 -w 1 -a 1 -r 0", '"bookkeeperEnsemble" : 1'),
    ("compaction-threshold", "-t 10M", "10485760"),
    ("offload-policies", "-d filesystem -oat 10M", '"managedLedgerOffloadDriver" : "filesystem"'),
    ("dispatcher-pause-on-ack-state-persistent", "", "true"),
)
TOPIC_POLICIES = (
    ("message-ttl", "-t 100", "100"),
    ("retention", "-t 10m -s 100M", '"retentionTimeInMinutes" : 10'),
    ("backlog-quota", "-l 10M -p producer_exception", "limitSize=10485760"),
    ("max-producers", "-p 5", "5"),
    ("max-consumers", "-c 5", "5"),
    ("max-message-size", "-m 1000", "1000"),
    ("max-subscriptions-per-topic", "-s 5", "5"),
    ("subscription-types-enabled", "-t Shared,Failover", '"Shared"'),
    ("inactive-topic-policies", "-e -t 100s -m delete_when_no_subscriptions", "100"),
    ("delayed-delivery", "-e -t 2s", '"tickTime" : 2000'),
    ("dispatch-rate", "-md 100", '"dispatchThrottlingRateInMsg" : 100'),
    ("publish-rate", "-m 100", '"publishThrottlingRateInMsg" : 100'),
    ("persistence", "-e 1 -w 1 -a 1 -r 0", '"bookkeeperEnsemble" : 1'),
    ("auto-subscription-creation", "-e", '"allowAutoSubscriptionCreation" : true'),
)


@pytest.mark.parametrize(
    ("family", "on", "table"),
    [
        ("namespaces", "public/shell", NAMESPACE_POLICIES),
        ("topicPolicies", "persistent://public/default/shell", TOPIC_POLICIES),
    ],
    ids=["namespaces", "topicPolicies"],
)
def test_policies_of_every_kind(
    admin: Admin, tmp_path: Path, family: str, on: str, table: tuple[tuple[str, str, str], ...]
) -> None:
    """Each is set, got, removed, and got again as before."""
    admin.says(
        "namespaces create public/shell" if family == "namespaces" else f"topics create {on}"
    )
    commands, expected = [], []
    for name, options, shown in table:
        get = f"{family} get-{name} {on}"
        commands += [get, f"{family} set-{name} {options} {on}", get]
        commands += [f"{family} remove-{name} {on}", get]
        expected.append((name, shown))
    found = admin.shell([" ".join(command.split()) for command in commands], tmp_path / "script")
    for at, (name, shown) in enumerate(expected):
        before, put, got, removed, after = found[5 * at : 5 * at + 5]
        assert (put, removed) == ("", ""), name
        assert shown in got, name
        assert after == before != got, name


ALONE = {
    "clusters get-cluster-migration standalone": '"migrated" : false',
    "clusters create-failure-domain standalone --domain-name d --broker-list b": "one broker",
    "clusters list-failure-domains standalone": "",
    "namespaces set-bookie-affinity-group public/default -pg g": "not on bookies",
    "namespaces set-resource-group public/default -rgn g": "ResourceGroup does not exist",
    "namespaces set-entry-filters public/default -efn f": "no entry filters",
    "namespaces get-is-allow-auto-update-schema public/default": "true",
    "namespaces split-bundle public/default -b 0x00000000_0xffffffff": "one bundle",
    "namespaces get-anti-affinity-group public/default": "",
    "brokers update-dynamic-config --config a --value b": "configuration file",
    "brokers healthcheck --topic-version V2": "ok",
    "brokers backlog-quota-check": "ok",
    "broker-stats allocator-stats default": "no allocator",
    # the last, since it closes standard output behind itself
    "broker-stats monitoring-metrics": '"brk_no_of_topics"',
}


def test_a_server_alone_says_so(admin: Admin, tmp_path: Path) -> None:
    found = admin.shell(list(ALONE), tmp_path / "script")
    for (command, expected), shown in zip(ALONE.items(), found, strict=True):
        assert expected in shown, (command, shown)
        assert "Exception" not in shown, (command, shown)


def test_compaction(admin: Admin, tmp_path: Path) -> None:
    topic = "persistent://public/default/compacted"
    publish(admin, topic, 10, batching_enabled=False)
    said = admin.shell(
        [
            f"topics compaction-status {topic}",
            f"topics compact {topic}",
            f"topics compaction-status -w {topic}",
            f"topics stats {topic}",
            f"topics unsubscribe {topic} -s __compaction",
            f"topics stats {topic}",
        ],
        tmp_path / "script",
    )
    assert "has not been run" in said[0]
    assert "compaction requested" in said[1]
    assert "success" in said[2]
    assert '"__compaction"' in said[3]
    assert '"lastCompactionRemovedEventCount" : 10' in said[3], "they have no keys"
    assert "__compaction" not in said[5]


def test_properties_of_all_topics(admin: Admin, tmp_path: Path) -> None:
    plain, parted = "persistent://public/default/plain", "persistent://public/default/props"
    story = {
        f"topics create {plain} -m k=v": "",
        f"topics update-properties {plain} -p x=y": "",
        f"topics get-properties {plain}": "k    v\nx    y",
        f"topics create-partitioned-topic {parted} -p 2 -m k=v": "",
        f"topics update-properties {parted} -p x=y": "",
        f"topics update-partitioned-topic {parted} -p 3": "",
        f"topics get-properties {parted}": "k    v\nx    y",
        f"topics remove-properties {parted} -k x": "",
        f"topics partitioned-stats-internal {parted}": '"partitions" : 3',
        f"topics info-internal {parted}": f"{parted}-partition-2",
        f"topics create-shadow-topic -s {plain} {plain}-shadow": "",
        f"topics get-shadow-source {plain}-shadow": plain,
        f"topics set-shadow-topics {plain} -t {plain}-shadow": "",
        f"topics get-shadow-topics {plain}": f"{plain}-shadow",
        f"topics create-shadow-topic -s {parted} {parted}-shadow": "",
        f"topics get-shadow-source {parted}-shadow": parted,
        f"topics create-shadow-topic -s {plain}-shadow {plain}-again": "is a shadow topic itself",
    }
    told(admin, story, tmp_path)


def test_a_reset_sends_consumers_back_to_where_it_points(admin: Admin) -> None:
    topic = "persistent://public/default/reset"
    client = pulsar.Client(
        admin.server.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    )
    consumer = client.subscribe(topic, "s", receiver_queue_size=1)
    publish(admin, topic, 3, batching_enabled=False)
    for _ in range(3):
        consumer.acknowledge(consumer.receive(10_000))
    admin.says(f"topics reset-cursor -s s -m earliest {topic}")
    assert [consumer.receive(10_000).data() for _ in range(3)] == [
        b"message 0",
        b"message 1",
        b"message 2",
    ]
    client.close()


LAMP = {"type": "record", "name": "Lamp", "fields": [{"name": "watts", "type": "int"}]}
COLOURED = {**LAMP, "fields": [*LAMP["fields"], {"name": "colour", "type": "string"}]}


def test_schemas(admin: Admin, tmp_path: Path) -> None:
    """Uploaded, got, compared, taken from a class, deleted; and used by a client in between."""
    for name, definition in (("lamp", LAMP), ("coloured", COLOURED)):
        body = {"type": "AVRO", "schema": json.dumps(definition), "properties": {"by": "me"}}
        (tmp_path / name).write_text(json.dumps(body))
    topic, extracted = "persistent://public/default/lamps", "persistent://public/default/orders"
    jar = maven.build(JAVA_CLIENT) / "pulsar-java-1.jar"
    story = {
        f"schemas upload {topic} -f {tmp_path / 'lamp'}": "",
        f"schemas get {topic}": '"watts"',
        f"schemas compatibility {topic} -f {tmp_path / 'lamp'}": "",
        f"schemas compatibility {topic} -f {tmp_path / 'coloured'}": "has no default",
        f"schemas upload {topic} -f {tmp_path / 'coloured'}": "has no default",
        "namespaces set-schema-compatibility-strategy public/default -c FORWARD": "",
        "namespaces get-schema-compatibility-strategy public/default": "FORWARD",
        f"schemas upload {topic} -f {tmp_path / 'coloured'} ": "",
        f"schemas get {topic} --version 1": '"colour"',
        f"schemas get {topic} -a": '"by" : "me"',
        f"schemas metadata {topic}": '"version" : 1',
        f"schemas extract {extracted} -j {jar} -c magnetar.interop.Schemas$Lamp -t avro": "",
        f"schemas get {extracted}": '"watts"',
        f"schemas delete {topic}": "",
        f"schemas get {topic} ": "Schema not found",
    }
    told(admin, story, tmp_path)
