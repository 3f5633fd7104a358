from magnetar.core.metadata.zookeeper.watches import Watches


def test_each_watcher_hears_of_its_prefix() -> None:
    watches, received = Watches(), []
    watches.add("/a", lambda path: received.append(("a", path)))
    watches.add("/", lambda path: received.append(("top", path)))
    for path in ("/a", "/a/b", "/ab"):
        watches.heard(path)
    assert received == [
        ("a", "/a"),
        ("top", "/a"),
        ("a", "/a/b"),
        ("top", "/a/b"),
        ("top", "/ab"),
    ]


def test_the_root_of_all_paths_is_no_value() -> None:
    watches, received = Watches("/top"), []
    watches.add("/top", received.append)
    watches.heard("/top")
    watches.heard("/top/a")
    watches.missed("/top")
    assert received == ["/top/a", "/top"]


def test_after_a_gap_each_watcher_hears_of_its_whole_prefix() -> None:
    watches, received = Watches(), []
    watches.add("/a", received.append)
    watches.add("/b", received.append)
    assert list(watches.prefixes()) == ["/a", "/b"]
    watches.missed("/a")
    assert received == ["/a"]


def test_the_end_of_a_watch_says_whether_it_was_the_last_of_its_prefix() -> None:
    watches, received = Watches(), []
    first = watches.add("/a", received.append)
    second = watches.add("/a", received.append)
    assert not first()
    watches.heard("/a")
    assert received == ["/a"]
    assert second()
    assert second(), "twice is once"
    watches.heard("/a")
    assert received == ["/a"]


def test_a_watcher_may_end_another_while_it_hears() -> None:
    watches, received = Watches(), []
    watches.add("/a", lambda path: end())
    end = watches.add("/a", received.append)
    watches.heard("/a")
    watches.missed("/a")
    assert received == []
