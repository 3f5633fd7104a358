"""Kafka's console tools, run as users run them, from making a topic to deleting it."""

import json

import pytest

from interop_tests.kafka.console import CONSUMER, GROUPS, TOOLS, Console

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPICS = f"{TOOLS}.TopicCommand"
OFFSETS = f"{TOOLS}.GetOffsetShell"
CONFIGS = "kafka.admin.ConfigCommand"
TRANSACTIONS = f"{TOOLS}.TransactionsCommand"
REASSIGN = f"{TOOLS}.reassign.ReassignPartitionsCommand"
QUORUM = f"{TOOLS}.MetadataQuorumCommand"
ACLS = f"{TOOLS}.AclCommand"
FORWARD = ["--reset-offsets", "--to-earliest", "--execute"]


@pytest.fixture
def console(server) -> Console:
    return Console(server.bootstrap_servers)


def test_topics_and_configs(console, topic):
    made = ["--create", "--partitions", "3", "--config", "retention.ms=100000"]
    console.run(TOPICS, "--topic", topic, *made)
    console.run(TOPICS, "--topic", topic, "--alter", "--partitions", "4")
    described = console.run(TOPICS, "--topic", topic, "--describe")
    assert "PartitionCount: 4\tReplicationFactor: 1" in described
    assert "retention.ms=100000" in described
    assert described.count("Leader: 0\tReplicas: 0\tIsr: 0") == 4
    where = ["--entity-type", "topics", "--entity-name", topic]
    console.run(CONFIGS, *where, "--alter", "--add-config", "max.message.bytes=1000,flush.ms=5")
    console.run(CONFIGS, *where, "--alter", "--delete-config", "retention.ms")
    results = console.run(CONFIGS, *where, "--describe")
    assert "max.message.bytes=1000 " in results
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms" not in results
    console.run(TOPICS, "--topic", topic, "--delete")
    assert topic not in console.run(TOPICS, "--list").split()


def test_configs_of_groups(console, topic):
    where = ["--entity-type", "groups", "--entity-name", topic]
    added = "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=7000"
    console.run(CONFIGS, *where, "--alter", "--add-config", added)
    console.run(CONFIGS, *where, "--alter", "--delete-config", "consumer.session.timeout.ms")
    results = console.run(CONFIGS, *where, "--describe")
    (line,) = [line.split() for line in results.splitlines() if line.startswith("  ")]
    assert line[0] == "consumer.heartbeat.interval.ms=7000"
    assert "synonyms={DYNAMIC_GROUP_CONFIG:consumer.heartbeat.interval.ms=7000," in line
    results = console.run(CONFIGS, *where, "--describe", "--all")
    assert "consumer.session.timeout.ms=45000 " in results
    results = console.run(CONFIGS, *where[:2], "--describe")
    assert f"Dynamic configs for group {topic} are:\n  {line[0]} " in results
    console.run(CONFIGS, *where, "--alter", "--delete-config", "consumer.heartbeat.interval.ms")
    assert topic not in console.run(CONFIGS, *where[:2], "--describe")


def test_quotas(console, topic):
    user = ["--entity-type", "users", "--entity-name", topic]
    default = ["--entity-type", "clients", "--entity-default"]
    added = "producer_byte_rate=1048576,request_percentage=50.5"
    console.run(CONFIGS, *user, *default, "--alter", "--add-config", added)
    address = ["--entity-type", "ips", "--entity-name", "192.0.2.1"]
    console.run(CONFIGS, *address, "--alter", "--add-config", "connection_creation_rate=5")
    shown = console.run(CONFIGS, *user, *default, "--describe")
    assert f"for user-principal '{topic}', the default client-id are" in shown
    assert "producer_byte_rate=1048576.0" in shown
    assert "request_percentage=50.5" in shown
    assert "connection_creation_rate=5.0" in console.run(CONFIGS, *address[:2], "--describe")
    deleted = "producer_byte_rate,request_percentage"
    console.run(CONFIGS, *user, *default, "--alter", "--delete-config", deleted)
    console.run(CONFIGS, *address, "--alter", "--delete-config", "connection_creation_rate")
    assert topic not in console.run(CONFIGS, *user[:2], "--describe")


def test_records_and_offsets(console, tmp_path, topic):
    keyed = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    said = "".join(f"k{number}:v{number}\n" for number in range(5))
    console.run(f"{TOOLS}.ConsoleProducer", "--topic", topic, *keyed, said=said)
    shown = ["--formatter-property", "print.key=true", "--max-messages", "5"]
    found = console.run(CONSUMER, "--topic", topic, "--from-beginning", "--group", topic, *shown)
    assert [line.split("\t") for line in found.splitlines()] == [
        [f"k{number}", f"v{number}"] for number in range(5)
    ]
    assert console.run(OFFSETS, "--topic", topic) == f"{topic}:0:5\n"
    assert console.run(OFFSETS, "--topic", topic, "--time", "1000") == f"{topic}:0:0\n"
    reset = "--reset-offsets --to-earliest --all-topics --execute"
    console.run(GROUPS, "--group", topic, *reset.split())
    results = console.run(GROUPS, "--group", topic, "--describe").split()
    assert results[results.index(topic, results.index("CLIENT-ID")) :][2:6] == ["0", "0", "5", "5"]
    expected = {"partitions": [{"topic": topic, "partition": 0, "offset": 3}], "version": 1}
    file = tmp_path / "delete.json"
    file.write_text(json.dumps(expected))
    deleted = console.run(f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(file))
    assert f"partition: {topic}-0\tlow_watermark: 3" in deleted
    assert console.run(OFFSETS, "--topic", topic, "--time", "earliest") == f"{topic}:0:3\n"
    folders = console.run(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", topic)
    (log,) = json.loads(folders.splitlines()[-1])["brokers"][0]["logDirs"]
    assert [one["partition"] for one in log["partitions"]] == [f"{topic}-0"]


def test_tools_that_verify(console, topic):
    count = ["--topic", topic, "--max-messages", "100"]
    sent = console.run(f"{TOOLS}.VerifiableProducer", *count)
    assert json.loads(sent.splitlines()[-1])["acked"] == 100
    group = ["--group-id", topic, "--reset-policy", "earliest"]
    found = console.run(f"{TOOLS}.VerifiableConsumer", *count, *group)
    events = [json.loads(line) for line in found.splitlines()]
    assert sum(one["count"] for one in events if one["name"] == "records_consumed") == 100
    assert {one["success"] for one in events if one["name"] == "offsets_committed"} == {True}


def test_transactions(console, kafka_java, server, topic):
    kafka_java.play("transactions.ends", server.bootstrap_servers, topic)
    listed = console.run(TRANSACTIONS, "list")
    (line,) = [line.split() for line in listed.splitlines() if line.startswith(topic)]
    assert line[3] == "CompleteAbort"
    where = ["--partition", "0", "--topic", topic]
    results = console.run(TRANSACTIONS, "describe-producers", *where)
    assert results.splitlines()[1].split()[0] == line[2]
    assert len(console.run(TRANSACTIONS, "find-hanging", "--broker-id", "0").splitlines()) == 1


def test_the_end_of_a_move_of_partitions(console, tmp_path, topic):
    """Verifying takes back the throttles of the broker and of the topics."""
    console.run(TOPICS, "--topic", topic, "--create", "--partitions", "2")
    partitions = [{"topic": topic, "partition": number, "replicas": [0]} for number in range(2)]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    results = console.run(REASSIGN, "--reassignment-json-file", str(plan), "--verify")
    assert results.count("is completed.") == 2
    assert "Clearing broker-level throttles on broker 0" in results


def test_the_quorum(console):
    status = console.run(QUORUM, "describe", "--status")
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    assert lines["LeaderId"].strip() == "0"
    assert lines["MaxFollowerLag"].strip() == "0"
    replication = console.run(QUORUM, "describe", "--replication").splitlines()
    assert replication[1].split()[0] == "0"
    assert replication[1].split()[-1] == "Leader"


def test_rules_of_access(console):
    """As with a broker of Kafka's that has no authorizer; the tool adds its own stack to that."""
    done = console.tried(ACLS, "--list")
    assert done.returncode == 1
    assert "No Authorizer is configured." in done.stdout
    assert "UnsupportedVersion" not in done.stdout


def test_what_is_internal(console, topic):
    console.run(TOPICS, "--topic", topic, "--create")
    console.run(GROUPS, "--topic", topic, "--group", topic, *FORWARD)
    assert "__consumer_offsets" in console.run(TOPICS, "--list").split()
    assert "__consumer_offsets" not in console.run(TOPICS, "--list", "--exclude-internal").split()
    described = console.run(TOPICS, "--topic", "__consumer_offsets", "--describe")
    assert "PartitionCount: 50" in described
    assert "cleanup.policy=compact" in described
