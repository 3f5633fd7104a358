"""Credentials of users, as `kafka-configs` asks for them."""

from __future__ import annotations

from typing import Any

from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Stage
from magnetar.wire.kafka.messages.scram import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)


def upsertion(name: str, mechanism: int = 2, iterations: int = 8192) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt",
        salted_password=b"salted",
    )


def request(
    *upsertions: ScramCredentialUpsertion, delete: tuple[str, ...] = ()
) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=name, mechanism=2) for name in delete],
        upsertions=list(upsertions),
    )


def codes(response: Any) -> dict[str, int]:
    return {one.user: one.error_code for one in response.results}


async def test_they_are_added_described_and_removed(stage: Stage) -> None:
    client = await stage.client()
    added = request(upsertion("ali"), upsertion("ali", 1, 4096), upsertion("eve"))
    assert codes(await client.exchange(added)) == {"ali": 0, "eve": 0}
    found = await client.exchange(DescribeUserScramCredentialsRequest(users=None))
    assert [
        (one.user, [(info.mechanism, info.iterations) for info in one.credential_infos])
        for one in found.results
    ] == [("ali", [(1, 4096), (2, 8192)]), ("eve", [(2, 8192)])]
    removed = request(delete=("eve", "bob"))
    assert codes(await client.exchange(removed)) == {"eve": 0, "bob": errors.RESOURCE_NOT_FOUND}
    users = [UserName(name=name) for name in ("ali", "eve", "x", "x")]
    found = await client.exchange(DescribeUserScramCredentialsRequest(users=users))
    assert codes(found) == {"ali": 0, "eve": 91, "x": errors.DUPLICATE_RESOURCE}


async def test_what_is_not_acceptable(stage: Stage) -> None:
    client = await stage.client()
    response = await client.exchange(
        request(
            upsertion(""),
            upsertion("few", iterations=4095),
            upsertion("many", iterations=16385),
            upsertion("other", mechanism=3),
            upsertion("twice"),
            upsertion("fine"),
            delete=("twice",),
        )
    )
    assert codes(response) == {
        "": errors.UNACCEPTABLE_CREDENTIAL,
        "few": errors.UNACCEPTABLE_CREDENTIAL,
        "many": errors.UNACCEPTABLE_CREDENTIAL,
        "other": errors.UNSUPPORTED_SASL_MECHANISM,
        "twice": errors.DUPLICATE_RESOURCE,
        "fine": 0,
    }
    found = await client.exchange(DescribeUserScramCredentialsRequest(users=[]))
    assert codes(found) == {"fine": 0}
