"""Notes of worn indexes: left once, logged once, gone with the index."""

from magnetar.bookie.server.index import wear
from magnetar.core.testing.memory_disk import MemoryDisk


def test_a_note_is_there_until_the_index_is_not():
    parent = MemoryDisk().directory("/data")
    assert wear.reason(parent, "index") == ""
    assert parent.names() == [], "a look makes nothing"
    index = parent.directory("index")
    assert wear.reason(parent, "index") == ""
    wear.note(index, "it has rotted")
    assert wear.reason(parent, "index") == "it has rotted"
    wear.note(index, "")
    assert wear.reason(parent, "index")
    parent.remove("index")
    assert wear.reason(parent, "index") == ""


def test_rot_is_reported_and_noted_once(caplog):
    parent = MemoryDisk().directory("/data")
    report = wear.reporter(parent.directory("index"))
    report("one block")
    report("another block")
    assert wear.reason(parent, "index") == "one block"
    assert caplog.text.count("the next start rebuilds it") == 1


def test_a_note_that_cannot_be_written_is_logged(caplog):
    disk = MemoryDisk()

    def fail(step, path):
        raise OSError(5, "broken")

    report = wear.reporter(disk.directory("/data/index"))
    disk.before = fail
    report("one block")
    assert "could not be noted" in caplog.text
