"""The rows of ranges: however a log is divided, each message is one row."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from magnetar.core.testing.entries import entry
from magnetar.spark_connector.errors import DataLossError
from magnetar.spark_connector.planning.ranges import between
from magnetar.spark_connector.reading.columns import BatchBuilder
from magnetar.spark_connector.reading.range_reader import RangeReader
from magnetar.spark_connector.reading.tests.ledgers import DAMAGED, LOG, MemoryDirectory

LARGE = [entry(b"part%d " % number, chunk=(b"a", number, 3)) for number in range(3)]
SENT = [entry(b"0"), LARGE[0], entry(b"2"), LARGE[1], entry(b"4"), LARGE[2], entry(b"6")]


def values(directory: MemoryDirectory, *cuts: int, fails: bool = True) -> list[bytes]:
    builder = BatchBuilder(("value",))
    now = directory.now
    for one in between(LOG, now, now.first, now.end):
        for first, end in pairwise((0, *cuts, one.last + 1)):
            piece = replace(one, first=first, last=end - 1)
            for _ in RangeReader(piece, directory, (), fails=fails).read_into(builder):
                raise AssertionError("there are few rows")
    found: list[bytes] = builder.build().column("value").to_pylist()
    return found


@pytest.mark.parametrize("cut", range(1, 7))
def test_however_it_is_divided(cut) -> None:
    expected = [b"0", b"2", b"4", b"part0 part1 part2 ", b"6"]
    directory = MemoryDirectory(SENT)
    assert values(directory, cut) == expected
    directory.compact(10, 20, [0, 1, 3, 4, 5, 6])
    assert values(directory, cut) == [value for value in expected if value != b"2"]


def test_what_is_damaged_is_named_or_left_out() -> None:
    directory = MemoryDirectory([entry(b"0"), DAMAGED, entry(b"2")])
    with pytest.raises(DataLossError, match=f"{LOG}: entry 1 is rotten"):
        values(directory)
    assert values(directory, fails=False) == [b"0", b"2"]
    torn = MemoryDirectory([entry(b"0"), entry(b"1")[:-3] + b"xyz", entry(b"2")])
    assert values(torn, fails=False)[-1] == b"2"
