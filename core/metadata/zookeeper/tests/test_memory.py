from magnetar.core.metadata.zookeeper import memory
from magnetar.core.metadata.zookeeper.memory import NodeMemory


def test_other_bytes_at_a_version_prove_something() -> None:
    seen = NodeMemory()
    assert not seen.was_other("/a", 3, b"new"), "nothing is known"
    seen.note("/a", 3, b"old", created=7)
    assert seen.was_other("/a", 3, b"new")
    assert not seen.was_other("/a", 3, b"old"), "equal bytes prove nothing"
    assert not seen.was_other("/a", 4, b"new"), "of another version nothing is known"
    seen.forget("/a")
    assert not seen.was_other("/a", 3, b"new")


def test_a_write_over_a_node_that_was_read_is_to_the_same_node() -> None:
    seen = NodeMemory()
    seen.note("/a", 3, b"", created=7)
    seen.note("/a", 4, b"x", created=None)
    assert seen.created("/a", 4) == 7
    seen.note("/a", 0, b"", created=None)
    assert seen.created("/a", 0) is None, "it was created anew"
    assert seen.created("/b", 0) is None


def test_the_oldest_notes_are_dropped(monkeypatch) -> None:
    monkeypatch.setattr(memory, "PATHS_MAX", 2)
    seen = NodeMemory()
    for path in ("/a", "/b", "/a", "/c"):
        seen.note(path, 0, b"old", created=1)
    assert [path for path in ("/a", "/b", "/c") if seen.was_other(path, 0, b"new")] == ["/a", "/c"]
