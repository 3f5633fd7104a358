"""Rows go where a Java client would send them, and to the same place when they come again."""

import pytest

from magnetar.spark_connector.writing.partitioner import (
    KEYS_KNOWN_MAX,
    ROWS_IN_A_RUN,
    Partitioner,
    murmur2,
)


@pytest.mark.parametrize(
    ("key", "known"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_are_those_of_the_java_client(key: bytes, known: int) -> None:
    """`UtilsTest.testMurmur2` of Kafka 4.3."""
    assert murmur2(key) == known & 0xFFFFFFFF


def test_a_key_has_one_partition() -> None:
    one, other = Partitioner(7, 0), Partitioner(7, 3)
    keys = [b"%d" % number for number in range(KEYS_KNOWN_MAX + 5)]
    assert [one.of(key) for key in keys] == [other.of(key) for key in keys]
    assert {one.of(key) for key in keys} == set(range(7))


def test_rows_without_a_key_go_around_in_runs() -> None:
    chooses = Partitioner(3, 2)
    chosen = [chooses.of(None) for _ in range(3 * ROWS_IN_A_RUN)]
    assert chosen == [2] * ROWS_IN_A_RUN + [0] * ROWS_IN_A_RUN + [1] * ROWS_IN_A_RUN
    assert Partitioner(1, 5).of(None) == 0
