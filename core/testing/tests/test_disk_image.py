"""What a power cut leaves: every part of it by itself."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.testing.disk_image import ROOT, DirectoryNode, DiskImage, FileNode

CHOICES = st.lists(st.integers(0, 1 << 16), min_size=1, max_size=50)


def chooser(numbers):
    given_numbers = iter(numbers * 1000)
    return lambda count: next(given_numbers) % count


@given(st.lists(st.tuples(st.integers(0, 3000), st.binary(max_size=2000))), CHOICES)
def test_a_synced_file_survives_whatever_is_written_after_it_elsewhere(writes, numbers):
    image = DiskImage()
    number = image.create(ROOT, "file")
    image.write(number, 0, b"k" * 512, False)
    image.sync(number)
    for offset, data in writes:
        image.write(number, 512 + offset, data, False)
    image.lose(chooser(numbers))
    assert bytes(image.file(number).data[:512]) == b"k" * 512


@given(st.lists(st.tuples(st.integers(0, 3000), st.binary(min_size=1, max_size=2000))), CHOICES)
def test_nothing_is_there_that_was_not_written(writes, numbers):
    image = DiskImage()
    number = image.create(ROOT, "file")
    for offset, data in writes:
        image.write(number, offset, data, False)
    image.lose(chooser(numbers))
    for at, byte in enumerate(image.file(number).data):
        possible = {data[at - offset] for offset, data in writes if 0 <= at - offset < len(data)}
        assert byte in possible | {0}


def test_what_is_seen_is_what_is_durable_after_a_cut():
    for node in (FileNode(), DirectoryNode()):
        node.lose(lambda count: count - 1)
        assert not node.pending
    image = DiskImage()
    number = image.make_directory(ROOT, "below")
    image.create(number, "file")
    copy = image.copy()
    copy.lose(lambda count: 0)
    assert copy.directory(ROOT).names == {"below": number}
    assert copy.directory(number).names == {}
    assert image.directory(number).names, "a copy is one"


def test_sizes_are_lost_by_themselves():
    image = DiskImage()
    number = image.create(ROOT, "file")
    image.resize(number, 100)
    image.sync(number)
    image.resize(number, 10)
    assert len(image.file(number).data) == 10
    image.lose(lambda count: 0)
    assert len(image.file(number).data) == 100


def test_one_disk_of_several_loses_power_alone():
    image = DiskImage()
    files = {}
    for path in ("a", "b"):
        directory = image.make_directory(ROOT, path)
        files[path] = image.create(image.make_directory(directory, "current"), "x")
        image.write(files[path], 0, b"bytes", False)
    gone = image.create(image.find(ROOT, "a"), "gone")
    image.lose(lambda count: 0, "/a")
    assert image.file(files["a"]).data == b""
    assert image.directory(image.find(image.find(ROOT, "a"), "current")).names == {}
    assert image.file(files["b"]).data == b"bytes"
    assert image.find(image.find(image.find(ROOT, "b"), "current"), "x") == files["b"]
    assert image.file(gone).data == b""
    image.lose(lambda count: 0, "/nowhere")
