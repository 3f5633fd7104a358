"""What every Database must do. Implementations run `CHECKS` in a fresh directory each."""

from __future__ import annotations

from collections.abc import Callable

from magnetar.core.ports.database import Database

Open = Callable[[], Database]
"""The same database, each time; closed before it is opened again."""
Check = Callable[[Open], None]


def fill(database: Database, keys: list[bytes]) -> None:
    batch = database.batch()
    for key in keys:
        batch.put(key, b"value of " + key)
    assert len(batch) == len(keys)
    database.write(batch)


def what_is_put_is_there(open_database: Open) -> None:
    database = open_database()
    assert database.get(b"a") is None
    fill(database, [b"a", b"b"])
    assert database.get(b"a") == b"value of a"
    fill(database, [])
    batch = database.batch()
    batch.put(b"a", b"one")
    batch.put(b"a", b"two")
    database.write(batch)
    assert database.get(b"a") == b"two"
    database.close()


def keys_are_in_the_order_of_their_bytes(open_database: Open) -> None:
    database = open_database()
    keys = [b"\x00", b"\x00\x01", b"\x7f", b"\x80", b"\xff"]
    fill(database, keys[::-1])
    assert [key for key, _ in database.from_key(b"")] == keys
    assert [key for key, _ in database.from_key(b"\x01")] == keys[2:]
    assert list(database.from_key(b"\xff\xff")) == []
    assert database.at_or_before(b"\x7e") == (b"\x00\x01", b"value of \x00\x01")
    assert database.at_or_before(b"\x7f") == (b"\x7f", b"value of \x7f")
    assert database.at_or_before(b"") is None
    assert list(database.read_through())[-1] == len(keys)
    database.close()


def what_is_deleted_is_gone(open_database: Open) -> None:
    database = open_database()
    fill(database, [b"%d" % i for i in range(8)])
    database.delete(b"0")
    database.delete(b"nothing")
    database.delete_range(b"2", b"5")
    assert [key for key, _ in database.from_key(b"")] == [b"1", b"5", b"6", b"7"]
    assert database.get(b"3") is None
    database.close()


def what_was_flushed_is_there_again(open_database: Open) -> None:
    database = open_database()
    fill(database, [b"a"])
    before = database.sequence()
    assert before > 0
    database.flush()
    database.close()
    database = open_database()
    assert database.get(b"a") == b"value of a"
    assert database.sequence() >= before
    fill(database, [b"b"])
    assert database.sequence() > before
    database.flush()
    database.close()
    assert [key for key, _ in open_database().from_key(b"")] == [b"a", b"b"]


CHECKS: list[Check] = [
    what_is_put_is_there,
    keys_are_in_the_order_of_their_bytes,
    what_is_deleted_is_gone,
    what_was_flushed_is_there_again,
]
