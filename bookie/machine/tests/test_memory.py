"""Memory for direct I/O."""

from magnetar.bookie.machine.memory import aligned


def test_aligned_bytes_are_zeros_that_may_be_written():
    data = aligned(1024)
    assert bytes(data) == bytes(1024)
    data[:3] = b"abc"
    assert bytes(data[:4]) == b"abc\0"
