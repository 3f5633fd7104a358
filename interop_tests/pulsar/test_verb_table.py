"""What the tables call kept are the policies that have no effect, with their reasons."""

from __future__ import annotations

import re
from typing import Final

import pytest

from interop_tests.pulsar.verb_table import documented
from magnetar.core.policy.declaration import levels_of
from magnetar.core.policy.policies import Effective

GROUPS: Final = ("namespaces", "topics", "topicPolicies")
WITH_OTHER_NAMES: Final = {
    "replication": ("clusters", "replication-clusters"),
    "anti_affinity": ("anti-affinity-group", "anti-affinity-namespaces"),
    "offload_deletion_lag_ms": ("offload-deletion-lag",),
}
"""Policies to which the verbs give names of their own."""
WITHOUT_EFFECT: Final = {
    name: policy.reason
    for policy in levels_of(Effective).policies
    if not policy.effect
    for name in WITH_OTHER_NAMES.get(policy.name, (policy.name.replace("_", "-"),))
}


@pytest.mark.parametrize("tool", ["pulsar-admin", "pulsarctl"])
def test_kept_is_what_has_no_effect(tool: str) -> None:
    said, declared = {}, {}
    for group, verbs in documented(tool).items():
        for verb, found in verbs.items():
            name = re.sub("^(get|set|remove|clear|delete)-", "", verb)
            if group not in GROUPS or name == verb or found.state == "refused":
                continue
            said[group, verb] = found.reason if found.state == "kept" else None
            declared[group, verb] = WITHOUT_EFFECT.get(name)
    assert len(said) > 90
    assert said == declared
