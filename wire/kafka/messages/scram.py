"""The messages of DescribeUserScramCredentials and AlterUserScramCredentials (KIP-554)."""

from __future__ import annotations

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import (
    Bytes,
    Int8,
    Int16,
    Int32,
    Message,
    Request,
    Response,
    String,
)


class UserName(Message):
    """A user to describe."""

    name: String


class DescribeUserScramCredentialsRequest(Request):
    """Asks which credentials users have; null or empty means all users."""

    KEY = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    users: list[UserName] | None


class CredentialInfo(Message):
    """A credential without its secrets."""

    mechanism: Int8
    iterations: Int32


class DescribeUserScramCredentialsResult(Message):
    """The credentials of one user."""

    user: String
    error_code: Int16
    error_message: String | None
    credential_infos: list[CredentialInfo]


class DescribeUserScramCredentialsResponse(Response):
    """The credentials of each user."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
    results: list[DescribeUserScramCredentialsResult]


class ScramCredentialDeletion(Message):
    """A credential to remove."""

    name: String
    mechanism: Int8


class ScramCredentialUpsertion(Message):
    """A credential to add or to replace: the client has salted the password."""

    name: String
    mechanism: Int8
    iterations: Int32
    salt: Bytes
    salted_password: Bytes


class AlterUserScramCredentialsRequest(Request):
    """Changes credentials; each user is changed as a whole or not."""

    KEY = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    deletions: list[ScramCredentialDeletion]
    upsertions: list[ScramCredentialUpsertion]


class AlterUserScramCredentialsResult(Message):
    """The result of one user."""

    user: String
    error_code: Int16
    error_message: String | None


class AlterUserScramCredentialsResponse(Response):
    """The result of each user."""

    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult]
