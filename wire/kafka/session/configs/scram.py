"""DescribeUserScramCredentials and AlterUserScramCredentials (KIP-554): `kafka-configs` uses them.

`core/security/scram_store.py` stores the credentials. Checks and texts are those of Kafka
(`ScramControlManager.java` and `ScramImage.java` of 4.3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.security.conversation import SCRAM_SHA_256, SCRAM_SHA_512
from magnetar.core.security.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    Credential,
    credential_of,
)
from magnetar.core.security.scram_store import change_credentials, credentials_of, scram_users
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    DUPLICATE_RESOURCE,
    NONE,
    RESOURCE_NOT_FOUND,
    UNACCEPTABLE_CREDENTIAL,
    UNSUPPORTED_SASL_MECHANISM,
    KafkaRefusal,
    code_and_message,
)
from magnetar.wire.kafka.messages.scram import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

if TYPE_CHECKING:
    from magnetar.core.ports.metadata_store import MetadataStore
    from magnetar.wire.kafka.session.context import Handler, RequestContext

MECHANISMS: Final = {1: SCRAM_SHA_256, 2: SCRAM_SHA_512}
"""By their numbers (`ScramMechanism.java`)."""
NAME_LETTERS_MAX: Final = 1024
SECRET_BYTES_MAX: Final = 1024
"""The longest salt, and the longest salted password."""


class ScramHandlers:
    """See the module's docstring."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: self.on_describe,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS: self.on_alter,
        }

    async def on_describe(
        self, _context: RequestContext, request: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse:
        times = Counter(user.name for user in request.users or ())
        results = []
        async for name in Cooperative(times or await scram_users(self._metadata)):
            described = await self._described(name, times[name])
            if times or described.error_code == NONE:  # users may have other configs only
                results.append(described)
        return DescribeUserScramCredentialsResponse(
            error_code=NONE, error_message=None, results=results
        )

    async def _described(self, name: str, times: int) -> DescribeUserScramCredentialsResult:
        result = DescribeUserScramCredentialsResult(
            user=name, error_code=NONE, error_message=None, credential_infos=[]
        )
        if times > 1:
            result.error_code = DUPLICATE_RESOURCE
            result.error_message = (
                "Cannot describe SCRAM credentials for the same user twice in a single request: "
                f"{name}"
            )
            return result
        found = await credentials_of(self._metadata, name)
        result.credential_infos = [
            CredentialInfo(mechanism=number, iterations=found[mechanism].iterations)
            for number, mechanism in MECHANISMS.items()
            if mechanism in found
        ]
        if not found:
            result.error_code = RESOURCE_NOT_FOUND
            result.error_message = (
                f"Attempt to describe a user credential that does not exist: {name}"
            )
        return result

    async def on_alter(
        self, _context: RequestContext, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        """Change each user whose changes are all valid."""
        changes: dict[str, dict[str, Credential | None]] = {}
        refused: dict[str, KafkaRefusal] = {}
        requested: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [
            *request.deletions,
            *request.upsertions,
        ]
        for one in requested:
            of_user = changes.setdefault(one.name, {})
            try:
                mechanism = _mechanism(one.name, one.mechanism)
                if mechanism in of_user:
                    raise KafkaRefusal(
                        DUPLICATE_RESOURCE,
                        "A user credential cannot be altered twice in the same request",
                    )
                of_user[mechanism] = (
                    _credential(mechanism, one)
                    if isinstance(one, ScramCredentialUpsertion)
                    else None
                )
            except KafkaRefusal as error:
                refused.setdefault(one.name, error)
        results = []
        async for name, of_user in Cooperative(changes.items()):
            refusal = refused.get(name)
            if refusal is None and not await change_credentials(self._metadata, name, of_user):
                refusal = KafkaRefusal(
                    RESOURCE_NOT_FOUND,
                    f"Attempt to delete a user credential that does not exist: {name}",
                )
            code, message = (NONE, None) if refusal is None else code_and_message(refusal)
            results.append(
                AlterUserScramCredentialsResult(user=name, error_code=code, error_message=message)
            )
        return AlterUserScramCredentialsResponse(results=results)


def _mechanism(name: str, number: int) -> str:
    if not name:
        raise KafkaRefusal(UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if len(name) > NAME_LETTERS_MAX:
        raise KafkaRefusal(UNACCEPTABLE_CREDENTIAL, "Username is too long")
    if number not in MECHANISMS:
        raise KafkaRefusal(UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return MECHANISMS[number]


def _credential(mechanism: str, requested: ScramCredentialUpsertion) -> Credential:
    for wrong, why in (
        (requested.iterations < ITERATIONS_MIN, "Too few iterations"),
        (requested.iterations > ITERATIONS_MAX, "Too many iterations"),
        (not requested.salt, "Empty salt"),
        (not requested.salted_password, "Empty salted password"),
        (
            max(len(requested.salt), len(requested.salted_password)) > SECRET_BYTES_MAX,
            "Salt or salted password is too long",
        ),
    ):
        if wrong:
            raise KafkaRefusal(UNACCEPTABLE_CREDENTIAL, why)
    return credential_of(mechanism, requested.salted_password, requested.salt, requested.iterations)
