"""pulsar-admin, Apache's own and unmodified, against a real server.

Its jars come from Maven Central by `admin/pom.xml`, once. Each command is a JVM of its own, as
users run it, so a test is one story of several commands.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

import magnetar

ADMIN = Path(__file__).with_name("admin")
JARS = ADMIN / "target" / "jars"
MAIN = "org.apache.pulsar.admin.cli.PulsarAdminTool"
JAVA = ("java", "-Xmx128m", "-XX:TieredStopAtLevel=1")
"""Small, and quick to start: it runs once per command."""
COMMAND_SECONDS = 60

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("java") and shutil.which("mvn")), reason="needs a JDK and Maven"
    ),
]


@pytest.fixture(scope="module")
def jars() -> Path:
    """The tool's class path, fetched once."""
    if not any(JARS.glob("pulsar-client-tools-*.jar")):
        subprocess.run(["mvn", "-q", "-B", "package"], cwd=ADMIN, check=True, timeout=600)
    return JARS


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


def test_tenants_and_namespaces(admin: Admin) -> None:
    admin.says("tenants create t --admin-roles me")
    assert admin.json("tenants get t") == {"adminRoles": ["me"], "allowedClusters": ["standalone"]}
    assert admin.says("tenants list").split() == ["public", "t"]
    assert "exists" in admin.fails("tenants create t")
    admin.says("namespaces create t/n --bundles 4")
    assert admin.says("namespaces list t") == "t/n"
    assert admin.json("namespaces policies t/n")["replication_clusters"] == ["standalone"]
    assert "still has namespaces" in admin.fails("tenants delete t")
    admin.says("namespaces delete t/n")
    admin.says("tenants delete t")
    assert admin.says("tenants list") == "public"


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


def test_topics(admin: Admin) -> None:
    topic, parted = "persistent://public/default/topics", "persistent://public/default/parted"
    admin.says(f"topics create {topic}")
    assert "exists" in admin.fails(f"topics create {topic}")
    admin.says(f"topics create-partitioned-topic {parted} -p 2")
    listed = admin.says("topics list public/default").split()
    assert {topic, f"{parted}-partition-0", f"{parted}-partition-1"} <= set(listed)
    assert admin.says("topics list-partitioned-topics public/default") == parted
    admin.says(f"topics update-partitioned-topic {parted} -p 3")
    metadata = admin.json(f"topics get-partitioned-topic-metadata {parted}")
    assert metadata["partitions"] == 3
    assert admin.says(f"topics lookup {topic}") == admin.server.pulsar_url
    assert admin.says(f"topics bundle-range {topic}") == "0x00000000_0xffffffff"
    publish(admin, parted, 10)
    stats = admin.json(f"topics partitioned-stats {parted} --per-partition")
    assert stats["msgInCounter"] == 10
    assert len(stats["partitions"]) == 3
    admin.says(f"topics delete-partitioned-topic {parted}")
    admin.says(f"topics unload {topic}")
    admin.says(f"topics delete {topic}")
    assert admin.says("topics list-partitioned-topics public/default") == ""


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
    assert "does not exist" in admin.fails(f"topics unsubscribe -s s {topic}")


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
    assert "has no schema" in admin.fails("schemas get persistent://public/default/any")
