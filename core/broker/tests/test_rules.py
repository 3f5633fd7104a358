"""The judge follows what is stored: tenants, namespaces, ACLs."""

from __future__ import annotations

from msgspec.structs import replace

from magnetar.core.broker.catalog import Tenant
from magnetar.core.broker.rules import SecurityRules
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.policy.values import AuthPolicies
from magnetar.core.security.acl_store import change_acls
from magnetar.core.security.acls import Acl, Pattern
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.security.identity import Identity
from magnetar.core.security.tests.people import guarded
from magnetar.core.testing.broker import running

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


async def test_without_a_judge_nothing_is_loaded() -> None:
    async with running() as broker:
        await broker.rules.open()
        await broker.rules.settled()
        assert broker.access.judge is None
