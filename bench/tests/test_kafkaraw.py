"""The generator by hand against a broker whose batches kafka-python judges."""

from collections import Counter

import pytest

from bench.drive import generator
from bench.tests.kafka_broker import KafkaBroker
from bench.tests.payloads import head_of


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    generator.build([generator.KAFKARAW])


def run(broker: KafkaBroker, *arguments: str) -> generator.Line:
    results = ["--mode", "publish", "--topic", "t", "--stall", "0.5", *arguments]
    return generator.run(generator.KAFKARAW, broker.port, results)


@pytest.mark.parametrize("size", [24, 100, 1024, 3072, 100_000])
@pytest.mark.parametrize("batch", [1, 3, 40])
def test_every_batch_is_sound_and_every_message_in_it_once(size: int, batch: int) -> None:
    with KafkaBroker(lambda number: (0, number * batch)) as broker:
        results = ["--messages", "120", "--bytes", str(size), "--batch", str(batch)]
        line = run(broker, *results)
    assert broker.complaints == []
    assert (line.ok, line.published) == (True, 120)
    assert {len(values) for values in broker.values} == {batch}
    values = [value for values in broker.values for value in values]
    assert [head_of(value).sequence for value in values] == list(range(120))
    assert {len(value) for value in values} == {size}


def test_producers_of_one_topic_share_its_partitions() -> None:
    shape = ["--connections", "2", "--producers", "3", "--partitions", "3", "--depth", "3"]
    with KafkaBroker() as broker:
        line = run(broker, "--messages", "6", *shape)
    assert line.ok
    assert Counter(broker.places) == {("t", 0): 2, ("t", 1): 2, ("t", 2): 2}
    assert {head_of(value).producer for (value,) in broker.values} == set(range(6))


def test_topics_are_numbered() -> None:
    with KafkaBroker() as broker:
        run(broker, *["--topic", "t-%d", "--topics", "2", "--producers", "2", "--messages", "2"])
    assert set(broker.places) == {("t-0", 0), ("t-1", 0)}


def test_a_refused_batch_is_noticed() -> None:
    with KafkaBroker(lambda number: (7 if number == 3 else 0, number)) as broker:
        line = run(broker, "--messages", "10")
    assert (line.ok, line.published) == (False, 9)
    assert line.trouble == {"refused": 1, "errors": 1}


def test_a_batch_without_an_answer_is_noticed() -> None:
    with KafkaBroker(lambda number: None if number == 9 else (0, number)) as broker:
        line = run(broker, "--messages", "10")
    assert (line.ok, line.published) == (False, 9)


def test_batches_that_are_stored_in_another_order_are_noticed() -> None:
    offsets = [0, 2, 1, 3]
    with KafkaBroker(lambda number: (0, offsets[number])) as broker:
        line = run(broker, "--messages", "4")
    assert (line.ok, line.reordered) == (False, 1)


def test_a_batch_that_is_stored_over_another_is_noticed() -> None:
    with KafkaBroker(lambda number: (0, min(number, 2))) as broker:
        line = run(broker, "--messages", "4")
    assert (line.ok, line.reordered) == (False, 1)


def test_idle_connections_need_no_topic() -> None:
    with KafkaBroker() as broker:
        results = ["--topic", "none", "--connections", "20", "--producers", "0"]
        child = generator.start_idle(generator.KAFKARAW, broker.port, results)
        child.terminate()
        assert child.stdout is not None
        child.stdout.close()
        child.wait(10)
    assert broker.places == []


def test_it_does_not_read() -> None:
    with KafkaBroker() as broker, pytest.raises(generator.GeneratorError):
        run(broker, "--mode", "consume", "--messages", "1")
