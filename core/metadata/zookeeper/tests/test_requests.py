from magnetar.core.metadata.zookeeper.requests import AddWatch, RemoveWatches


def test_bytes_of_a_watch() -> None:
    """As ZooKeeper 3.9 reads them: a string with its length, and a number."""
    assert AddWatch("/a").serialize() == b"\0\0\0\2/a\0\0\0\1"
    assert RemoveWatches("/é").serialize() == b"\0\0\0\3/\xc3\xa9\0\0\0\3"
    assert (AddWatch.type, RemoveWatches.type) == (106, 18)
    assert AddWatch("/a").deserialize(b"\0\0\0\0", 0)
    assert RemoveWatches("/a").deserialize(b"\0\0\0\0", 0)
