"""The access that settings ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jwt
import pytest

from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.access import Access
from magnetar.core.security.conversation import (
    BASIC,
    CERTIFICATE,
    OAUTHBEARER,
    PLAIN,
    TOKEN,
    AuthPeer,
)
from magnetar.core.security.htpasswd.password_hashes import new_hash
from magnetar.core.security.identity import Identity
from magnetar.operator_error import OperatorError
from magnetar.security.access import GuardedAccess, open_access
from magnetar.security.sources import owner_only
from magnetar.settings.mqtt import Mqtt
from magnetar.settings.security import Security

SECRET = "data:;base64,c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M="


def opened(**settings: Any) -> GuardedAccess:
    return open_access(Security(**settings), SystemClock())


async def prove(access: Access, mechanism: str, said: bytes) -> str:
    conversation = access.begin(mechanism, AuthPeer("127.0.0.1"))
    await conversation.respond(said)
    assert conversation.identity is not None
    return conversation.identity.name


def test_nothing_is_asked_by_default() -> None:
    access = opened().access
    assert (access.mechanisms, access.judge) == ({}, None)
    assert access.anonymous().name == ""


async def test_tokens_and_passwords(tmp_path: Path) -> None:
    people = tmp_path / "people"
    owner_only(people, f"ali:{new_hash('sesame')}\n".encode())
    access = opened(token_secret_key=SECRET, htpasswd=str(people)).access
    assert set(access.mechanisms) == {TOKEN, OAUTHBEARER, PLAIN, BASIC}
    token = jwt.encode({"sub": "bob"}, b"s" * 32).encode()
    assert await prove(access, TOKEN, token) == "bob"
    assert await prove(access, PLAIN, b"\0x\0token:" + token) == "bob"
    assert await prove(access, BASIC, b"ali:sesame") == "ali"
    with pytest.raises(Unauthenticated):
        access.anonymous()
    assert access.judge is not None


def test_anonymous_superusers_and_no_rights() -> None:
    access = opened(token_secret_key=SECRET, anonymous_role="guest", superusers=("root",)).access
    assert access.anonymous().name == "guest"
    assert access.judge is not None
    assert access.judge.superusers == {"root"}
    assert opened(token_secret_key=SECRET, authorization=False).access.judge is None


class Guest:
    """A session that notes its end."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.ended = False

    def rights_changed(self) -> None:
        """Nothing is attached."""

    def expired(self) -> None:
        self.ended = True


async def test_people_are_read_again(tmp_path: Path) -> None:
    people = tmp_path / "people"
    owner_only(people, f"ali:{new_hash('sesame')}\n".encode())
    guarded = opened(htpasswd=str(people))
    assert await prove(guarded.access, BASIC, b"ali:sesame") == "ali"
    guest = Guest(Identity("ali", (), "password"))
    guarded.access.live.add(guest)
    owner_only(people, f"bob:{new_hash('open')}\n".encode())
    for source in guarded.sources:
        source.look()
        source.look()
    assert guest.ended, "whom the file does not name any more"
    assert await prove(guarded.access, BASIC, b"bob:open") == "bob"
    with pytest.raises(Unauthenticated):
        await prove(guarded.access, BASIC, b"ali:sesame")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"token_secret_key": "data:,short"}, "a secret has 32 bytes or more"),
        ({"token_public_key": "data:,x"}, "no public key"),
        ({"token_jwks": "data:,x"}, "no JWKS document"),
        ({"htpasswd": "/nowhere"}, "cannot read /nowhere"),
        ({"htpasswd": "data:,ali:secret"}, "the hash of ali is not bcrypt, apr1 or SHA"),
        ({"htpasswd": "data:,%FF"}, "utf-8"),
    ],
)
def test_what_cannot_be_used(settings: dict[str, str], said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        opened(**settings)


def test_rules_for_mqtt_topics_are_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A change is in force with all decisions made anew; a file that is wrong changes nothing."""
    path = tmp_path / "acl"
    path.write_text("user ali\ntopic a\n")
    guarded = opened(token_secret_key=SECRET)
    file = guarded.open_acl_file(Mqtt(acl_file=str(path)))
    assert file is not None
    judge = guarded.access.judge
    assert judge is not None
    (source,) = [one for one in guarded.sources if one.setting == "mqtt.acl_file"]
    before = judge.generation
    path.write_text("user bob\ntopic b\n# longer\n")
    source.look()
    source.look()
    assert set(file.rules.by_user) == {"bob"}
    assert judge.generation > before
    path.write_text("user eve\ntopic b c\n")
    source.look()
    source.look()
    assert set(file.rules.by_user) == {"bob"}
    assert "line 2: 'b' is none of read, write, readwrite, deny" in caplog.text
    assert opened(token_secret_key=SECRET).open_acl_file(Mqtt()) is None


def test_rules_for_mqtt_topics_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"mqtt\.acl_file: cannot read .*none"):
        opened(token_secret_key=SECRET).open_acl_file(Mqtt(acl_file=str(tmp_path / "none")))


def test_certificates_prove_only_if_they_are_asked_for() -> None:
    assert CERTIFICATE not in opened(token_secret_key=SECRET).access.mechanisms
    guarded = opened(client_certificates=True)
    assert set(guarded.access.mechanisms) == {CERTIFICATE}
    found = Identity("ali", method=CERTIFICATE, authorities=frozenset((b"digest",)))
    assert guarded.access.live.is_gone(found), "no authority is trusted yet"
    assert guarded.access.by_certificate(AuthPeer("")) is None, "it shows none"
