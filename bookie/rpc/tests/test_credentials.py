from magnetar.bookie.rpc.credentials import TICKET, PasswordCredentials, TokenCredentials


def test_a_token_is_said_once_and_is_the_one_of_now():
    credentials = TokenCredentials(TICKET, b"1")
    credentials.token = b"2"
    exchange = credentials.begin()
    assert exchange.respond(b"") == b"2"
    assert exchange.respond(b"whatever") is None
    assert credentials.begin().respond(b"") == b"2"


def test_a_password_waits_for_the_challenge():
    exchange = PasswordCredentials(lambda: "n", "ali", "sesame").begin()
    assert exchange.respond(b"") == b""
    assert b'username="ali"' in (exchange.respond(b'nonce="x",realm="bookkeeper"') or b"")
