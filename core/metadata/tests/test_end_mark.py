from pathlib import Path

from magnetar.core.metadata import end_mark
from magnetar.core.metadata.end_mark import SLOT_BYTES, End, EndMark


def test_the_last_that_was_written_counts(tmp_path: Path) -> None:
    path = tmp_path / "end"
    mark = EndMark.create(path, End(1, 1, 0, 0), sync=True)
    assert end_mark.read(path) == End(1, 1, 0, 0)
    for number in range(1, 6):
        mark.write(1, number, number * 7)
        assert end_mark.read(path) == End(number + 1, 1, number, number * 7)
    mark.close()


def test_a_slot_torn_or_flipped_at_every_byte_leaves_the_one_before() -> None:
    older, newer = End(6, 2, 40, 9), End(7, 2, 41, 10)
    slots = end_mark.encode(older) + end_mark.encode(newer)
    assert end_mark.decode(slots) == newer
    for at in range(40):
        flipped = bytearray(slots)
        flipped[SLOT_BYTES + at] ^= 0x10
        assert end_mark.decode(bytes(flipped)) == older
        torn = slots[: SLOT_BYTES + at] + bytes(SLOT_BYTES - at)
        assert end_mark.decode(torn) in (older, newer)
        flipped = bytearray(slots)
        flipped[at] ^= 0x10
        assert end_mark.decode(bytes(flipped)) == newer


def test_nothing_whole_is_no_end() -> None:
    for data in (b"", bytes(2 * SLOT_BYTES), b"\xff" * 2 * SLOT_BYTES):
        assert end_mark.decode(data) is None


def test_a_failed_turn_is_taken_again(tmp_path: Path, monkeypatch) -> None:
    """The other slot is the only good one then."""
    path = tmp_path / "end"
    mark = EndMark.create(path, End(1, 1, 0, 0), sync=False)
    offsets = []

    def failing(fd, data, offset, *, sync):
        offsets.append(offset)
        raise OSError(28, "full")

    with monkeypatch.context() as patch:
        patch.setattr(end_mark.files, "write_at", failing)
        for _ in range(2):
            try:
                mark.write(1, 1, 1)
            except OSError:
                continue
    assert len(set(offsets)) == 1
    mark.write(1, 1, 1)
    assert end_mark.read(path) == End(2, 1, 1, 1)
    mark.close()
