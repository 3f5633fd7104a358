"""Modules that are compiled as they are (docs/decisions/0019), and when their sources run instead.

Python prefers a compiled module to its source. `prefer_sources` turns that round for this package.
That is done for MAGNETAR_PURE=1; for unit tests, which replace parts of modules and use doubles of
classes; and in a checkout whose sources have changed since they were compiled, so that nobody runs
what they have just edited and sees nothing happen.

Invariant: a module that was imported before stays as it is, so this comes first.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    PathFinder,
    SourceFileLoader,
)
from pathlib import Path
from typing import Final

from magnetar.core.native import PURE_WANTED

PACKAGE: Final = Path(__file__).parents[2]
ROOMS: Final = ("bookie", "core", "wire")
LIBRARY: Final = f"{PACKAGE.name}.hot__mypyc"
"""All compiled modules; what has a module's name only looks its part up there."""

_why: list[str] = []
"""Why sources are preferred."""


def prefer_sources(why: str) -> None:
    """Import modules of this package from their source from now on, where they have one."""
    _why.append(why)
    sys.path_hooks.insert(0, _finder)
    for path in [path for path in sys.path_importer_cache if path.startswith(str(PACKAGE))]:
        del sys.path_importer_cache[path]


def _finder(path: str) -> FileFinder:
    if not path.startswith(str(PACKAGE)):
        raise ImportError("not of this package", path=path)
    return FileFinder(
        path,
        (SourceFileLoader, SOURCE_SUFFIXES),
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
    )


def prefer_right(package: Path = PACKAGE) -> None:
    """Prefer sources if that is asked for, or nothing is compiled, or a checkout has changed."""
    if PURE_WANTED:
        prefer_sources("MAGNETAR_PURE is set")
        return
    spec = PathFinder.find_spec(LIBRARY, [str(package)])
    if spec is None or spec.origin is None:
        prefer_sources("not built")
    elif (package / ROOMS[0]).is_symlink() and has_newer(
        package, Path(spec.origin).stat().st_mtime
    ):
        prefer_sources("sources have changed, see `make native`")


def has_newer(package: Path, compiled: float) -> bool:
    """Whether a source was changed after that time."""
    return any(_changed(f"{package / room}/") > compiled for room in ROOMS)


def _changed(folder: str) -> float:
    """When a source below a folder was last changed; those of tests are not compiled."""
    latest = 0.0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                latest = max(latest, entry.stat().st_mtime)
            elif entry.is_dir() and entry.name not in ("tests", "__pycache__"):
                latest = max(latest, _changed(entry.path))
    return latest


def described() -> str:
    """What runs of the modules that can be compiled, for people."""
    return f"interpreted ({_why[0]})" if _why else "compiled"
