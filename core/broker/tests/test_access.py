"""The doors of security stand open, and are where they will be."""

from __future__ import annotations

import pytest

from magnetar.core.broker.access import ANYBODY, Access, Action, Kind


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("kind", Kind)
def test_everybody_may_do_everything(action: Action, kind: Kind) -> None:
    Access().check(ANYBODY, action, kind, "x")


def test_there_is_no_mechanism() -> None:
    assert Access().mechanisms == {}
