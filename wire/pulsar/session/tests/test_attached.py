"""Room for one more, or none."""

import pytest

from core.errors import NotAllowed
from wire.pulsar.session.attached import ATTACHED_MAX, check_attached


def test_the_last_place_and_none_behind_it() -> None:
    check_attached(range(ATTACHED_MAX - 1))
    with pytest.raises(NotAllowed, match="100000"):
        check_attached(range(ATTACHED_MAX))
