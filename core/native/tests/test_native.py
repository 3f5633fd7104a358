"""Which of two twins runs."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from magnetar.core import native
from magnetar.core.entry import header, stamps

ASK = (
    "import magnetar.core.entry.header; from magnetar.core import native; print(native.described())"
)


def answer(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, **environment},
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_without_a_compiled_module_the_pure_function_runs() -> None:
    assert native.quickest(stamps.headers, "magnetar.core.entry.never_built") is stamps.headers
    reason = native._lacking.pop("magnetar.core.entry.never_built")  # others ask what is lacking
    assert reason == "not built" or native.PURE_WANTED


def test_pure_can_be_asked_for() -> None:
    assert answer(MAGNETAR_PURE="1") == "pure (MAGNETAR_PURE is set)"


def test_an_empty_wish_is_none() -> None:
    assert answer(MAGNETAR_PURE="") == answer(MAGNETAR_PURE="0")


def test_where_they_can_be_built_they_are() -> None:
    """Or the tests of compiled twins would be skipped for ever, and nobody would know."""
    headers = Path(sysconfig.get_path("include"), "Python.h")
    if shutil.which("cc") is None or not headers.exists():
        pytest.skip("no C compiler, or no Python.h")
    assert answer(MAGNETAR_PURE="0") == "compiled"
    assert header.headers is not stamps.headers or native.PURE_WANTED
