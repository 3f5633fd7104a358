"""The cookie's text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import cookie

STOCK = (
    '4\nbookieHost: "127.0.0.1:31811"\njournalDir: "/d/journal"\n'
    'ledgerDirs: "1\\t/d/ledgers"\ninstanceId: "0b2c"\n'
)


def test_a_stock_bookies_cookie_is_read():
    found = cookie.decode(STOCK)
    assert found == cookie.Cookie("127.0.0.1:31811", "/d/journal", "1\t/d/ledgers", "0b2c")
    assert found.encode() == "5" + STOCK[1:]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no bookie's"),
        ("six\n", "no bookie's"),
        ("6\n", "layout is 6"),
        ("3\n", "layout is 3"),
        ('5\nbookieHost: "a"\n', "journalDir"),
    ],
)
def test_what_is_no_cookie_of_ours_is_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        cookie.decode(text)


@given(st.text(alphabet='ab\t\n"\\ /:', max_size=20))
def test_any_text_survives(text):
    made = cookie.Cookie(text, text, text, text)
    assert cookie.decode(made.encode()) == made


def test_a_bookie_with_indexes_apart():
    made = cookie.Cookie("b:1", "/j1,/j2", cookie.directories(["/a", "/b"]), "x", "1\t/index")
    assert made.ledger_directories == "2\t/a\t/b"
    assert made.encode().endswith('instanceId: "x"\nindexDirs: "1\\t/index"\n')
    assert cookie.decode(made.encode()) == made
