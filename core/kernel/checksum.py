"""CRC32C, the checksum of Pulsar's frames and of BookKeeper's entries: in hardware, on any buffer.

The package `crc32c` imports its command line and reads its own version, which costs 25 ms of a
start of 400 ms. Its extension module suffices, so that is loaded alone; if a later release has it
elsewhere, the package is imported as usual.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any


def _load() -> Callable[..., int]:
    package = PathFinder.find_spec("crc32c")
    folders = package.submodule_search_locations if package is not None else None
    found = PathFinder.find_spec("_crc32c", folders) if folders else None
    if found is None or found.loader is None:
        import crc32c as whole

        return whole.crc32c
    module: Any = module_from_spec(found)
    found.loader.exec_module(module)
    function: Callable[..., int] = module.crc32c
    return function


crc32c = _load()
"""`crc32c(data, value=0)`: the checksum of `data`, going on from `value`."""
