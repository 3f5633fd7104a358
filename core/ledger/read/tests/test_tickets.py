"""Tickets for ledgers: what is believed, and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.ledger.read import tickets

KEY = bytes(range(32))
NOW = 1_700_000_000_000


def one_of(*ledger_ids, key=KEY, expires_ms=NOW + 1000):
    ((_, ticket),) = tickets.issue(key, ledger_ids, expires_ms)
    return ticket


@given(st.sets(st.integers(0, (1 << 62) - 1), max_size=200))
def test_each_ledger_has_a_ticket_that_names_it(ledger_ids):
    found = set()
    for named, ticket in tickets.issue(KEY, ledger_ids, NOW + 1):
        assert len(ticket) <= tickets.TICKET_BYTES_MAX
        assert tickets.read(KEY, ticket, NOW).ledgers == frozenset(named)
        found.update(named)
    assert found == ledger_ids


def test_it_is_small():
    issued = list(tickets.issue(KEY, range(1_000_000, 1_010_000), NOW))
    assert len(issued) == 157
    assert sum(len(ticket) for _, ticket in issued) < 2 * 10_000


def test_it_ends():
    ticket = one_of(7)
    assert tickets.read(KEY, ticket, NOW + 999).expires_ms == NOW + 1000
    with pytest.raises(Unauthenticated, match="has expired"):
        tickets.read(KEY, ticket, NOW + 1000)


def test_another_key():
    with pytest.raises(Unauthenticated, match="not signed with the key"):
        tickets.read(bytes(32), one_of(7), NOW)


@given(st.data())
def test_no_changed_byte_is_overlooked(data):
    ticket = bytearray(one_of(7, 300, 70_000))
    at = data.draw(st.integers(0, len(ticket) - 1))
    ticket[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(Unauthenticated):
        tickets.read(KEY, bytes(ticket), NOW)


@given(st.binary(max_size=800))
def test_no_bytes_are_a_ticket_by_chance(said):
    with pytest.raises(Unauthenticated):
        tickets.read(KEY, said, NOW)


def test_a_megabyte_is_not_hashed():
    with pytest.raises(Unauthenticated, match="it is no ticket"):
        tickets.read(KEY, bytes(1 << 20), NOW)


def test_a_version_that_is_not_known(monkeypatch):
    monkeypatch.setattr(tickets, "_VERSION", 2)
    later = one_of(7)
    monkeypatch.undo()
    with pytest.raises(Unauthenticated, match="version 2"):
        tickets.read(KEY, later, NOW)


def test_a_short_key_is_refused():
    with pytest.raises(ValueError, match="32 bytes or more, not 31"):
        tickets.check_key(bytes(31))
    assert tickets.check_key(KEY) == KEY
