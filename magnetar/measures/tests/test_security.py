"""Metrics of logins, denials, and the audit log."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import Unauthenticated, Unauthorized
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.security.conversation import BASIC, AuthPeer
from magnetar.core.security.htpasswd.password_hashes import new_hash
from magnetar.core.security.identity import Identity
from magnetar.measures.security import families
from magnetar.security.access import open_access
from magnetar.security.sources import owner_only
from magnetar.settings.security import Security
from magnetar.wire.http.metrics.exposition import text


async def test_logins_and_denials(tmp_path: Path) -> None:
    people = tmp_path / "people"
    owner_only(people, f"ali:{new_hash('sesame')}\n".encode())
    settings = Security(htpasswd=str(people), audit_log=str(tmp_path / "audit"))
    guarded = open_access(settings, SystemClock())
    for password in (b"sesame", b"wrong"):
        conversation = guarded.access.begin(BASIC, AuthPeer("h"))
        try:
            await conversation.respond(b"ali:" + password)
        except Unauthenticated:
            assert password == b"wrong"
    with pytest.raises(Unauthorized):
        guarded.access.check(Identity("ali"), Action.READ, ResourceType.TOPIC, "t")
    lines = [line for line in text(families(guarded)).splitlines() if not line.startswith("#")]
    assert lines == [
        'pulsar_authentication_success_total{auth_method="basic"} 1',
        'pulsar_authentication_failures_total{auth_method="basic"} 1',
        "magnetar_denials_total 1",
        "magnetar_audit_lost_total 0",
    ]


def test_nobody_is_asked() -> None:
    assert families(open_access(Security(), SystemClock())) == []
