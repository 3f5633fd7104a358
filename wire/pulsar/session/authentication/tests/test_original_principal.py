"""Proxies: for whom they speak, and what their clients have to prove."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from magnetar.core.security.access import Access
from magnetar.core.security.identity import Identity
from magnetar.core.security.tests.people import guarded
from magnetar.core.testing.broker import Stores, running
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.authentication.authentication import REFRESH
from magnetar.wire.pulsar.session.conftest import Player, Stage
from magnetar.wire.pulsar.session.connect import VERSION_LETTERS_MAX
from magnetar.wire.pulsar.tests import peer

PROXY = {"proxy_roles": frozenset(["proxy", "other-proxy"])}
PROVEN: dict[str, Any] = {**PROXY, "authenticate_original_auth_data": True}


def connect(who: str, principal: str = "", data: str = "", method: str = "", **more: Any) -> bytes:
    """A proxy's CONNECT for its client; what is empty is not said."""
    said = {
        "original_principal": principal,
        "original_auth_data": data,
        "original_auth_method": method,
    }
    said = {name: value for name, value in said.items() if value}
    return peer.connect(auth_method_name="token", auth_data=who.encode(), **said, **more)


def answer(method: str, data: bytes) -> bytes:
    response = pb.AuthData(auth_method_name=method, auth_data=data)
    return peer.frame("AUTH_RESPONSE", pb.CommandAuthResponse(response=response))


@asynccontextmanager
async def staged(access: Access) -> AsyncIterator[Stage]:
    stores = Stores()
    async with running(stores, access=access) as broker:
        yield Stage(stores, broker)


async def refused(client: Player, said: bytes) -> Any:
    received = await client.says_one(said)
    assert (received.kind, received.body.request_id) == ("ERROR", 2**64 - 1)
    assert client.line.ending is not None
    return received.body.error


async def may(client: Player, number: int = 1) -> bool:
    """Whether it may attach a producer."""
    received = await client.says_one(peer.producer(number, number, "t"))
    return received.kind == "PRODUCER_SUCCESS"


async def test_a_proxy_is_believed_unless_its_client_has_to_prove_itself(
    guarded_stage: Stage,
) -> None:
    await guarded_stage.permit(proxy="produce", alice="produce")
    client = guarded_stage.stranger(**PROXY)
    said = connect("proxy", "alice", "bob", "token")
    assert (await client.says_one(said)).kind == "CONNECTED"
    assert await may(client)


async def test_who_the_client_proves_to_be_counts_and_not_who_the_proxy_says(
    guarded_stage: Stage,
) -> None:
    await guarded_stage.permit(proxy="produce", alice="produce")
    for proof, method, works in (
        ("alice", "token", True),
        ("alice:secret", "basic", True),
        ("bob", "token", False),
    ):
        client = guarded_stage.stranger(**PROVEN)
        said = connect("proxy", "alice" if proof == "bob" else "bob", proof, method)
        assert (await client.says_one(said)).kind == "CONNECTED"
        assert await may(client) is works, proof


@pytest.mark.parametrize(
    "said",
    [
        connect("proxy", "alice", "alice:wrong", "basic"),
        connect("proxy", "alice", "", "token"),
        connect("proxy", "alice", "alice", "unheard-of"),
        connect("proxy", "alice", "alice"),
        connect("proxy", "alice"),
    ],
)
async def test_a_client_that_proves_nothing_is_refused(guarded_stage: Stage, said: bytes) -> None:
    client = guarded_stage.stranger(**PROVEN)
    assert await refused(client, said) == pb.AuthenticationError


@pytest.mark.parametrize(
    "said",
    [
        connect("proxy"),
        connect("alice", "bob", "bob", "token"),
        connect("alice", "alice", "alice", "token"),
        connect("proxy", "alice", "other-proxy", "token"),
        connect("alice", proxy_version="4.2.0"),
        connect("proxy", "ali\nce", "alice", "token"),
        connect("proxy", "a" * 2000, "alice", "token"),
    ],
)
async def test_who_speaks_for_nobody_or_may_not(guarded_stage: Stage, said: bytes) -> None:
    client = guarded_stage.stranger(**PROVEN)
    assert await refused(client, said) == pb.AuthorizationError


async def test_a_proxy_without_a_proof_of_its_own_is_not_believed_either() -> None:
    async with staged(guarded(anonymous=Identity("proxy"))) as stage:
        client = stage.stranger(**PROVEN)
        said = peer.connect(original_principal="alice", original_auth_data="alice")
        assert await refused(client, said) == pb.AuthorizationError


async def test_a_client_may_be_nobody_if_others_may() -> None:
    async with staged(guarded(anonymous=Identity("guest"))) as stage:
        await stage.permit(proxy="produce", guest="produce")
        client = stage.stranger(**PROVEN)
        said = connect("proxy", "alice", method="none")
        assert (await client.says_one(said)).kind == "CONNECTED"
        assert await may(client)


class Rounds:
    """A proof that takes more than one message."""

    refusal = ""
    identity: Identity | None = None

    async def respond(self, said: bytes) -> bytes:
        return b"and then?"


async def test_a_proof_of_several_rounds_cannot_be_passed_on() -> None:
    access = guarded()
    access.mechanisms["rounds"] = lambda _peer: Rounds()
    async with staged(access) as stage:
        client = stage.stranger(**PROVEN)
        said = connect("proxy", "alice", "hello", "rounds")
        assert await refused(client, said) == pb.AuthenticationError


async def test_the_proof_of_the_client_is_refreshed(guarded_stage: Stage) -> None:
    """The challenge has the proxy's method, as Apache's; the answer is the client's own."""
    await guarded_stage.permit(proxy="produce", alice="produce")
    client = guarded_stage.stranger(**PROVEN)
    said = connect("proxy", "alice", "alice:secret", "basic")
    assert (await client.says_one(said)).kind == "CONNECTED"
    session = client.session
    assert session.identity.name == "alice"
    session.expired()
    (challenge,) = await client.receive()
    assert challenge.body.challenge.auth_method_name == "token"
    assert challenge.body.challenge.auth_data == REFRESH
    before = session.identity
    assert await client.says(answer("basic", b"alice:secret")) == []
    assert session.identity is not before
    assert session.identity.name == "alice"
    assert await may(client)


@pytest.mark.parametrize(
    "said",
    [answer("basic", b"bob:secret"), answer("token", b"alice"), answer("basic", b"proxy:secret")],
)
async def test_a_refresh_makes_nobody_of_another_name(guarded_stage: Stage, said: bytes) -> None:
    client = guarded_stage.stranger(**PROVEN)
    begin = connect("proxy", "alice", "alice:secret", "basic")
    assert (await client.says_one(begin)).kind == "CONNECTED"
    client.session.expired()
    await client.receive()
    assert await refused(client, said) == pb.AuthenticationError


def with_roles(*in_turn: tuple[str, ...]) -> Access:
    """An access that gives these roles to who proves itself with `roles`, one after the other."""
    left = list(in_turn)

    class Roles:
        identity: Identity | None = None
        refusal = ""

        async def respond(self, said: bytes) -> bytes:
            self.identity = Identity(said.decode(), left.pop(0))
            return b""

    access = guarded()
    access.mechanisms["roles"] = lambda _peer: Roles()
    return access


async def test_a_refresh_makes_no_proxy() -> None:
    async with staged(with_roles(("alice",), ("alice", "other-proxy"))) as stage:
        client = stage.stranger(**PROVEN)
        begin = connect("proxy", "alice", "alice", "roles")
        assert (await client.says_one(begin)).kind == "CONNECTED"
        client.session.expired()
        await client.receive()
        assert await refused(client, answer("roles", b"alice")) == pb.AuthorizationError


async def test_a_refresh_may_take_roles_of_the_client_away() -> None:
    async with staged(with_roles(("alice", "writers"), ("alice",))) as stage:
        await stage.permit(proxy="produce", writers="produce")
        client = stage.stranger(**PROVEN)
        begin = connect("proxy", "alice", "alice", "roles")
        assert (await client.says_one(begin)).kind == "CONNECTED"
        assert await may(client)
        client.session.expired()
        await client.receive()
        assert (await client.says_one(answer("roles", b"alice"))).kind == "CLOSE_PRODUCER"


async def test_without_rights_the_clients_proof_is_refreshed_all_the_same() -> None:
    access = Access(dict(guarded().mechanisms), anonymous=None)
    async with staged(access) as stage:
        client = stage.stranger(**PROVEN)
        begin = connect("proxy", "alice", "alice:secret", "basic")
        assert (await client.says_one(begin)).kind == "CONNECTED"
        assert client.session.identity.name == "alice"
        client.session.expired()
        await client.receive()
        assert await client.says(answer("basic", b"alice:secret")) == []
        assert client.line.ending is None
        assert await may(client)


async def test_nothing_of_what_was_said_stays(guarded_stage: Stage) -> None:
    """Neither is kept what somebody says who need not say anything."""
    client = guarded_stage.stranger(**PROVEN)
    begin = connect("proxy", "alice", "alice", "token", client_version="v" * 50_000)
    assert (await client.says_one(begin)).kind == "CONNECTED"
    authentication = client.session.connecting.authentication
    assert authentication._original._user is None
    assert len(client.session.client.version) == VERSION_LETTERS_MAX
    async with staged(Access()) as stage:
        other = stage.stranger()
        said = peer.connect(auth_method_name="m" * 50_000, original_principal="p" * 50_000)
        assert (await other.says_one(said)).kind == "CONNECTED"
        authentication = other.session.connecting.authentication
        assert (authentication._method, authentication._original._user) == ("", None)
