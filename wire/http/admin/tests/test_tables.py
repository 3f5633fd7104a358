"""Every path of the reference that suites and tools call is in a table."""

import pytest

from magnetar.core.policy.declaration import levels_of
from magnetar.core.policy.policies import Effective
from magnetar.wire.http.admin.tables import tables

TABLES = tables(levels_of(Effective))

EXPECTED = {
    "/admin/v2/clusters": ["", "/{cluster}"],
    "/admin/v2/tenants": ["", "/{tenant}"],
    "/admin/v2/namespaces": [
        *("/{tenant}", "/{tenant}/{namespace}"),
        *(
            f"/{{tenant}}/{{namespace}}/{last}"
            for last in (
                *("topics", "permissions", "deduplication", "backlogQuota", "backlogQuotaMap"),
                *("retention", "messageTTL", "unload", "bundles", "schemaValidationEnforced"),
                *("schemaCompatibilityStrategy", "autoTopicCreation", "encryptionRequired"),
                *("autoSubscriptionCreation", "{bundle}/unload", "{bundle}/split"),
            )
        ),
    ],
    "/admin/v2/persistent": [
        *("/{tenant}/{namespace}", "/{tenant}/{namespace}/partitioned"),
        *(
            f"/{{tenant}}/{{namespace}}/{{topic}}{last}"
            for last in (
                *("", "/partitions", "/stats", "/partitioned-stats", "/internalStats"),
                *("/internal-info", "/subscriptions", "/subscription/{subscription}"),
                *("/compaction", "/terminate", "/unload", "/lastMessageId", "/examinemessage"),
                *("/messageid/{timestamp}", "/ledger/{ledger}/entry/{entry}"),
                *("/subscription/{subscription}/resetcursor", "/truncate"),
                *("/subscription/{subscription}/skip_all",),
            )
        ),
    ],
    "/admin/v2/brokers": ["", "/health", "/ready", "/version", "/leaderBroker"],
}


@pytest.mark.parametrize("mount", EXPECTED)
def test_it_is_there(mount: str) -> None:
    known = {path for _methods, path, *_ in TABLES[mount]}
    assert set(EXPECTED[mount]) - known == set()


def test_both_domains_have_the_same_paths() -> None:
    assert TABLES["/admin/v2/persistent"] is TABLES["/admin/v2/non-persistent"]
