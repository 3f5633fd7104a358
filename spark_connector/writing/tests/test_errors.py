"""Which of the server's answers pass, and what the others mean."""

import pytest

from magnetar.spark_connector.writing.errors import Unready, WriteError, check
from magnetar.wire.kafka import errors as codes


def test_no_error_is_none() -> None:
    check(codes.NONE, "t")


@pytest.mark.parametrize("code", [5, codes.NOT_LEADER, codes.STORAGE_ERROR, codes.NOT_COORDINATOR])
def test_some_pass(code: int) -> None:
    with pytest.raises(Unready):
        check(code, "t")


@pytest.mark.parametrize(
    ("code", "said", "text"),
    [
        (codes.MESSAGE_TOO_LARGE, None, "t: MESSAGE_TOO_LARGE"),
        (codes.MESSAGE_TOO_LARGE, "of 9 bytes", "t: of 9 bytes"),
        (codes.INVALID_TXN_STATE, "no", "t: its transaction is over"),
        (999, None, "t: error 999"),
    ],
)
def test_others_are_told(code: int, said: str | None, text: str) -> None:
    with pytest.raises(WriteError, match=text):
        check(code, "t", said)
