"""Compiled twins of pure functions: whether there are any is decided here, once, at import.

Some functions run once per message. They are written twice: in Python, which is the reference and
always works, and in Cython (`compiled.pyx` or `compiled/` beside it), for whoever had a C compiler
when this was installed. As in the standard library's `json`, the reference `py_name` and its twin
`name` are told apart by a prefix, and `name = quickest(py_name, home)` is the one that runs.

`octets.pxd` is what the compiled modules share: numbers in bytes, and CRC32C.

Invariant: twins have the same signature and the same results for the same arguments; the tests
drive both with arbitrary bytes. `MAGNETAR_PURE=1` keeps all compiled ones out.

Whole modules that are compiled as they are: `sources.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeVar

PURE_WANTED: Final = os.environ.get("MAGNETAR_PURE", "0") not in ("", "0")

Function = TypeVar("Function", bound=Callable[..., Any])

_lacking: dict[str, str] = {}
"""Compiled modules that could not be loaded, each with the reason."""
_loaded: dict[str, Any] = {}


def quickest(pure: Function, home: str) -> Function:
    """The twin of `pure` in the compiled module `home`; `pure` itself if that is not here."""
    if home not in _loaded and home not in _lacking:
        _load(home)
    twin: Function = (
        getattr(_loaded[home], pure.__name__.removeprefix("py_")) if home in _loaded else pure
    )
    return twin


def _load(home: str) -> None:
    if PURE_WANTED:
        _lacking[home] = "MAGNETAR_PURE is set"
        return
    try:
        _loaded[home] = import_module(home)
    except ModuleNotFoundError as error:
        _lacking[home] = "not built" if error.name == home else str(error)
    except ImportError as error:  # built for something else than this
        _lacking[home] = str(error)


def is_compiled() -> bool:
    """Whether every function that has a twin runs compiled."""
    return not _lacking


def described() -> str:
    """What runs, for people: `compiled`, or `pure` with the reason."""
    if is_compiled():
        return "compiled"
    reasons = "; ".join(dict.fromkeys(_lacking.values()))
    return f"{'partly ' if _loaded else ''}pure ({reasons})"
