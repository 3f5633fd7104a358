"""The judge follows what is stored: tenants, namespaces, ACLs."""

from __future__ import annotations

import pytest
import trio
from msgspec.structs import replace

from magnetar.core.broker.catalog import Tenant
from magnetar.core.broker.rules import SecurityRules
from magnetar.core.kernel.errors import NotReady
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.metadata.changed_paths import RETRY_SECONDS
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.policy.values import AuthPolicies
from magnetar.core.ports.metadata_store import Versioned
from magnetar.core.security.acl_store import change_acls
from magnetar.core.security.acls import Acl, Pattern
from magnetar.core.security.actions import Action, ResourceType, subscription_of
from magnetar.core.security.identity import Identity
from magnetar.core.security.tests.people import guarded
from magnetar.core.testing.broker import Stores, running

DEFAULT = NamespaceName.parse("public/default")
TOPIC = "persistent://public/default/t"


async def test_what_is_stored_is_in_force() -> None:
    access = guarded()
    assert access.judge is not None
    judge = access.judge
    async with running() as broker:
        catalog = broker.catalog
        policies = await catalog.policies(DEFAULT)
        granted = replace(policies, auth_policies=AuthPolicies(namespace_auth={"ali": ["consume"]}))
        await catalog.set_policies(DEFAULT, granted)
        await catalog.put_tenant("shop", Tenant(["boss"], [catalog.cluster]), create=True)
        rules = SecurityRules(access, catalog, broker.metadata)
        await rules.open()
        ali, boss = Identity("ali"), Identity("boss")
        assert judge.allows(ali, Action.READ, ResourceType.TOPIC, TOPIC)
        assert judge.allows(boss, Action.CREATE, ResourceType.TENANT, "shop")

        await catalog.set_policies(DEFAULT, policies)
        await rules.settled()
        assert not judge.allows(ali, Action.READ, ResourceType.TOPIC, TOPIC)
        await catalog.put_tenant("shop", Tenant([], [catalog.cluster]), create=False)
        await rules.settled()
        assert not judge.allows(boss, Action.CREATE, ResourceType.TENANT, "shop")

        acl = Acl(ResourceType.TOPIC, Pattern.LITERAL, "t", "User:ali", "*", Action.READ, True)
        await change_acls(broker.metadata, [acl])
        await rules.settled()
        assert judge.allows(ali, Action.READ, ResourceType.TOPIC, TOPIC)
        await change_acls(broker.metadata, remove=[acl])
        await rules.settled()
        assert not judge.allows(ali, Action.READ, ResourceType.TOPIC, TOPIC)

        await catalog.delete_tenant("shop")
        await rules.settled()
        assert judge.permissions.admins == {}
        assert judge.permissions.namespaces == {}


class Moody(MemoryMetadata):
    """A store that fails while it is told to."""

    fails = False

    async def get(self, path: str) -> Versioned | None:
        if self.fails:
            raise NotReady("the session is lost")
        return await super().get(path)


async def test_storage_that_does_not_answer_is_asked_again(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """Until it does, former rules are in force; a change is not answered, and nothing ends."""
    access = guarded()
    assert access.judge is not None
    stores, metadata = Stores(), Moody()
    stores.metadata = metadata
    async with running(stores, access=access) as broker:
        catalog = broker.catalog
        policies = await catalog.policies(DEFAULT)
        granted = replace(policies, auth_policies=AuthPolicies(namespace_auth={"ali": ["consume"]}))
        await catalog.set_policies(DEFAULT, granted)
        metadata.fails = True
        with pytest.raises(NotReady):
            await broker.rules.settled()
        asked = Identity("ali"), Action.READ, ResourceType.TOPIC, TOPIC
        await trio.sleep(3 * RETRY_SECONDS)
        assert not access.judge.allows(*asked)
        assert "storage is asked again: the session is lost" in caplog.text
        metadata.fails = False
        await trio.sleep(2 * RETRY_SECONDS)
        assert access.judge.allows(*asked)


async def test_the_mode_of_subscriptions_is_in_force() -> None:
    access = guarded()
    judge = access.judge
    assert judge is not None
    async with running(access=access) as broker:
        catalog = broker.catalog
        policies = await catalog.policies(DEFAULT)
        auth = AuthPolicies(namespace_auth={"ali": ["consume"]})
        for mode, others in (("None", True), ("Prefix", False)):
            changed = replace(policies, auth_policies=auth, subscription_auth_mode=mode)
            await catalog.set_policies(DEFAULT, changed)
            await broker.rules.settled()
            for name, allowed in (("ali-1", True), ("1", others)):
                resource = subscription_of(TOPIC, name)
                found = judge.allows(
                    Identity("ali"), Action.READ, ResourceType.SUBSCRIPTION, resource
                )
                assert found is allowed, (mode, name)


async def test_without_a_judge_nothing_is_loaded() -> None:
    async with running() as broker:
        await broker.rules.open()
        await broker.rules.settled()
        assert broker.access.judge is None
