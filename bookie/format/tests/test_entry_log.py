"""The entry log's bytes: headers and maps, whole and damaged."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import entry_log as log_format


@given(st.dictionaries(st.integers(0, 2**62), st.integers(1, 2**40), max_size=50))
def test_maps(ledgers):
    assert log_format.read_ledgers_map(log_format.ledgers_map(ledgers), len(ledgers)) == ledgers


def test_maps_in_batches_and_damaged_ones():
    ledgers = {i: i + 1 for i in range(25_000)}
    data = log_format.ledgers_map(ledgers)
    assert data.count(b"\xff" * 15 + b"\xfe") == 3
    assert log_format.read_ledgers_map(data, 25_000) == ledgers
    with pytest.raises(ValueError, match="names"):
        log_format.read_ledgers_map(data, 24_999)
    with pytest.raises(ValueError, match="damaged"):
        log_format.read_ledgers_map(b"\0" * 100, 1)
    for end in (len(data) - 1, len(data) - 16, 100_000):
        with pytest.raises(ValueError, match="its ledgers map"):
            log_format.read_ledgers_map(data[:end], 25_000)


@pytest.mark.parametrize("data", [b"", b"BKLG".ljust(1024, b"\0"), b"BKLO\0\0\0\x09".ljust(1024)])
def test_headers_that_are_none(data):
    with pytest.raises(ValueError, match="it"):
        log_format.read_header(data)


def test_names_are_hex_ids():
    assert log_format.file_name(0x1F) == "1f.log"
    assert log_format.log_id("1f.log") == 0x1F
    for name in ("1f.log", "0.log", "7fffffff.log"):
        assert log_format.is_log(name)
    for name in ("copy.log", "-1.log", "1.LOG", "1.log.old", "123456789.log", ".log"):
        assert not log_format.is_log(name)


def test_a_header_comes_back_and_older_versions_have_no_map():
    assert log_format.read_header(log_format.header()) == (0, 0)
    assert log_format.read_header(log_format.header(5000, 3)) == (5000, 3)
    assert len(log_format.header(5000, 3)) == log_format.HEADER_BYTES
    version_0 = b"BKLO" + bytes(4) + b"\xff" * 12
    assert log_format.read_header(version_0.ljust(1024, b"\0")) == (0, 0)


@given(st.binary(max_size=300), st.integers(0, 20))
def test_noise_is_no_map(noise, ledgers):
    with suppress(ValueError):
        assert len(log_format.read_ledgers_map(noise, ledgers)) == ledgers
