"""The doors of security stand open, and are where they will be."""

from __future__ import annotations

import pytest

from magnetar.core.security.access import Access
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.security.identity import ANYBODY


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("kind", ResourceType)
def test_everybody_may_do_everything(action: Action, kind: ResourceType) -> None:
    Access().check(ANYBODY, action, kind, "x")


def test_there_is_no_mechanism() -> None:
    assert Access().mechanisms == {}
