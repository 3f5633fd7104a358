"""The list in `setup.py`, as tests read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.core.testing.hot_modules import hot_modules


def test_the_list_is_found(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text('OTHER = 1\nHOT = ["core.a", "wire.b"]\n')
    assert hot_modules(tmp_path) == ["core.a", "wire.b"]


def test_without_a_list(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("OTHER = 1\n")
    with pytest.raises(LookupError):
        hot_modules(tmp_path)
