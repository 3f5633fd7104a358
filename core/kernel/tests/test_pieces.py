"""The size of several pieces, of one, and of none."""

import pytest

from magnetar.core.kernel.pieces import size_of


@pytest.mark.parametrize("pieces", [[], [b""], [b"abc"], (b"a", b"", b"bc")])
def test_it_is_that_of_the_joined_bytes(pieces: list[bytes]) -> None:
    assert size_of(pieces) == len(b"".join(pieces))
