"""Disks that break or kill: a library that is loaded before libc, see `broken_disk.c`."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("broken_disk.c")


def library(folder: Path) -> Path:
    """Builds the library in that folder; `LD_PRELOAD` names it."""
    built = folder / "broken_disk.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", built, SOURCE, "-ldl"], check=True)
    return built
