from magnetar.core.metadata.zookeeper.requests import NO_NODE, AddWatch, ReadAll, RemoveWatches


def test_bytes_of_a_watch() -> None:
    """As ZooKeeper 3.9 reads them: a string with its length, and a number."""
    assert AddWatch("/a").serialize() == b"\0\0\0\2/a\0\0\0\1"
    assert RemoveWatches("/é").serialize() == b"\0\0\0\3/\xc3\xa9\0\0\0\3"
    assert (AddWatch.type, RemoveWatches.type) == (106, 18)
    assert AddWatch("/a").deserialize(b"\0\0\0\0", 0)
    assert RemoveWatches("/a").deserialize(b"\0\0\0\0", 0)


def test_bytes_of_a_read_of_many_nodes() -> None:
    """Each has a header of its type, and flags no watch; a header without a type ends them."""
    end = b"\xff\xff\xff\xff\1\xff\xff\xff\xff"
    one = b"\0\0\0\4\0\xff\xff\xff\xff\0\0\0\2/a\0"
    assert ReadAll(("/a", "/a")).serialize() == one + one + end
    assert ReadAll(()).serialize() == end
    assert ReadAll.type == 22


def test_answers_of_a_read_of_many_nodes() -> None:
    header, stat = b"\0\0\0\4\0\0\0\0\0", bytes(68)
    code = NO_NODE.to_bytes(4, "big", signed=True)
    answer = b"".join(
        [
            *(header, b"\0\0\0\2ab", stat),
            *(b"\xff\xff\xff\xff\0", code, code),
            *(header, b"\xff\xff\xff\xff", stat),
            *(header, b"\0\0\0\0", stat),
            b"\xff\xff\xff\xff\1\xff\xff\xff\xff",
        ]
    )
    assert ReadAll(("/a",) * 4).deserialize(b"..." + answer, 3) == [b"ab", NO_NODE, None, b""]
