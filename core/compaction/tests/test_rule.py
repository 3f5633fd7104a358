"""What says that a key is gone."""

from magnetar.core.compaction.rule import Rule
from magnetar.core.entry.compaction import Item


def test_tombstones() -> None:
    items = [Item(0, b"k", size) for size in (-1, 0, 1)]
    assert [Rule().is_gone(item) for item in items] == [True, False, False]
    assert [Rule(empty_is_gone=True).is_gone(item) for item in items] == [True, True, False]
