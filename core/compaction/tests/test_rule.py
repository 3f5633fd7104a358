"""What says that a key is gone."""

from magnetar.core.compaction.rule import KAFKA, Item, Rule


def test_tombstones() -> None:
    items = [Item(0, b"k", size) for size in (-1, 0, 1)]
    assert [KAFKA.is_gone(item) for item in items] == [True, False, False]
    assert [Rule(empty_is_gone=True).is_gone(item) for item in items] == [True, True, False]
