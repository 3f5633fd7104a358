"""What is said of ledgers; `interop_tests/bookkeeper/test_tools.py` has the commands."""

import pytest
from click.testing import CliRunner

from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.cli.ledger import DIGESTS, described, written_date
from magnetar.cli.root import root
from magnetar.operator_error import OperatorError


def test_dates_are_for_people() -> None:
    assert written_date(1_700_000_000_000) == "2023-11-14 22:13:20 UTC"
    assert written_date(0) == "at an unknown time"


def test_a_digest_has_the_name_that_settings_have() -> None:
    found = described(7, LedgerMetadata(digestType=LedgerMetadata.HMAC))
    assert found["digest"] == "MAC"
    assert set(DIGESTS) <= set(LedgerMetadata.DigestType.keys())


def test_a_span_that_is_none() -> None:
    words = ["ledger", "read", "7", "--first", "50", "--last", "20", "--metadata-uri", "zk:h:1"]
    with pytest.raises(OperatorError, match="--first 50 is behind --last 20"):
        CliRunner().invoke(root, words, catch_exceptions=False)
