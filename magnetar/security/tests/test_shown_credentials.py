"""What this process shows to bookies, and that a new token is told."""

import pytest
import trio

from magnetar.bookie.rpc.credentials import TOKEN
from magnetar.bookie.rpc.messages import Authenticate
from magnetar.operator_error import OperatorError
from magnetar.security.shown_credentials import ShownCredentials
from magnetar.settings.security import Security


def test_nothing_is_shown_without_a_setting():
    shown = ShownCredentials(Security())
    network = object()
    assert shown.network(network) is network
    assert shown.first_words() is None


def test_a_token_is_shown():
    shown = ShownCredentials(Security(bookie_token="data:,token:abc"))
    assert shown.first_words() == Authenticate(TOKEN, b"abc")


def test_a_password_is_shown(tmp_path):
    path = tmp_path / "password"
    path.write_text("ali:se:same\n")
    shown = ShownCredentials(Security(bookie_password=str(path)))
    assert (shown.credentials.name, shown.credentials.password) == ("ali", "se:same")
    assert shown.first_words() is None, "it takes a conversation"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (Security(bookie_token="data:,"), "it holds no token"),
        (Security(bookie_token="data:,a%20b"), "it holds no token"),
        (Security(bookie_password="data:,ali"), "it is not NAME:PASSWORD"),
        (Security(bookie_token="data:,a", bookie_password="data:,a:b"), "are both set"),
        (Security(bookie_token="/does/not/exist"), "cannot read"),
        (Security(bookie_certificate="a.pem"), "is shown over TLS"),
        (Security(bookie_ca="/does/not/exist"), "cannot read /does/not/exist"),
        (Security(bookie_ca="/dev/null"), "/dev/null"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_cannot_be_shown(settings, why):
    with pytest.raises(OperatorError, match=why):
        ShownCredentials(settings)


async def test_a_new_token_is_told(tmp_path, autojump_clock):
    path = tmp_path / "token"
    path.write_text("one")
    shown = ShownCredentials(Security(bookie_token=str(path)))
    said = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shown.run, said.append)
        await trio.sleep(3)
        assert not said
        path.write_text("another")
        await trio.sleep(3)
        assert said == [Authenticate(TOKEN, b"another")]
        assert shown.first_words() == Authenticate(TOKEN, b"another")
        nursery.cancel_scope.cancel()


def test_nothing_secret_is_in_what_settings_show():
    assert "abc" not in repr(ShownCredentials(Security(bookie_token="data:,abc")))
