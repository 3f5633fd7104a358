"""The generator against a broker that protobuf judges, and that misbehaves on purpose."""

import subprocess

import pytest

from bench.drive import generator
from bench.tests.broker import Broker


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    generator.build([generator.PULSARLOAD])


def run(broker: Broker, *arguments: str) -> generator.Line:
    return generator.run(
        generator.PULSARLOAD, broker.port, ["--topic", "t", "--stall", "0.5", *arguments]
    )


def test_every_message_is_published_read_and_acknowledged() -> None:
    with Broker() as broker:
        line = run(broker, "--mode", "both", "--messages", "50", "--permits", "10")
    assert broker.complaints == []
    assert line.ok
    assert (line.published, line.consumed) == (50, 50)
    assert broker.acknowledged == list(range(50))
    assert [each.sequence_id for each in broker.metadata] == list(range(50))
    assert not broker.metadata[0].HasField("num_messages_in_batch")


def test_a_batch_is_one_entry_of_many_messages() -> None:
    with Broker() as broker:
        line = run(broker, "--mode", "both", "--messages", "200", "--batch", "100")
    assert broker.complaints == []
    assert line.ok
    assert line.consumed == 200
    assert [each.num_messages_in_batch for each in broker.metadata] == [100, 100]
    assert [(each.sequence_id, each.highest_sequence_id) for each in broker.metadata] == [
        (0, 99),
        (100, 199),
    ]
    assert (
        broker.metadata[0].uncompressed_size
        == len(broker.entries[0]) - 10 - broker.metadata[0].ByteSize()
    )


@pytest.mark.parametrize("size", [24, 100, 1024, 3071, 3072, 3073, 100_000])
def test_checksums_agree_with_another_implementation(size: int) -> None:
    with Broker() as broker:
        line = run(broker, "--mode", "both", "--messages", "3", "--bytes", str(size))
    assert (broker.complaints, line.ok) == ([], True)


def test_a_lost_message_is_noticed() -> None:
    with Broker(script=lambda entries: entries[1:]) as broker:
        line = run(broker, "--mode", "both", "--messages", "20")
    assert (line.ok, line.missing) == (False, 1)


def test_a_doubled_message_is_noticed() -> None:
    with Broker(script=lambda entries: [*entries[:1], *entries]) as broker:
        line = run(broker, "--mode", "both", "--messages", "20")
    assert (line.ok, line.duplicates, line.missing) == (False, 1, 0)


def test_swapped_messages_are_noticed() -> None:
    def swapped(entries: list[bytes]) -> list[bytes]:
        return [] if len(entries) < 2 else [entries[1], entries[0], *entries[2:]]

    with Broker(script=swapped) as broker:
        line = run(broker, "--mode", "both", "--messages", "20")
    assert (line.ok, line.reordered, line.missing) == (False, 1, 0)


def test_a_damaged_message_is_noticed() -> None:
    with Broker(script=lambda entries: [each[:-1] + b"?" for each in entries]) as broker:
        line = run(broker, "--mode", "both", "--messages", "2")
    assert not line.ok


def test_at_a_rate_latency_counts_from_when_a_message_was_due() -> None:
    with Broker() as broker:
        line = run(broker, "--mode", "publish", "--messages", "20", "--rate", "1000")
    assert line.ok
    assert line.seconds >= 0.019
    assert line.publish_latency is not None
    assert line.publish_latency.count == 20


def test_a_run_that_is_interrupted_is_no_measurement() -> None:
    with Broker() as broker:
        command = [
            str(generator.OUT / generator.PULSARLOAD),
            "--port",
            str(broker.port),
            "--topic",
            "t",
        ]
        load = subprocess.Popen(
            [*command, "--mode", "publish", "--seconds", "60", "--rate", "1000"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert broker.heard_send.wait(10)
        load.terminate()
        said, _ = load.communicate(timeout=10)
    assert load.returncode == 1
    assert not generator.parse_line(said).ok
    assert '"interrupted": true, "stalled": false, "cut_short": true' in said


def test_a_measurement_takes_at_least_as_long_as_it_was_asked_to() -> None:
    with Broker() as broker:
        # A busy machine may stand still for longer than what others here take for the end.
        line = run(
            broker, "--stall", "30", *["--mode", "publish", "--seconds", "0.2", "--warmup", "0.1"]
        )
    assert line.ok
    assert line.seconds >= 0.2


def test_a_bad_option_is_one_sentence() -> None:
    command = [
        str(generator.OUT / generator.PULSARLOAD),
        "--mode",
        "publish",
        "--port",
        "1",
        "--topic",
        "t",
        "--messages",
        "no",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "pulsarload: --messages must be a number from 1 to 1e+15, not 'no'\n"
