"""Everything an operator may decide, as one frozen, typed value.

Sections are Structs (`server.py`, `storage.py`, `broker.py`); `load` joins the defaults, one TOML
file, the environment and the command line's flags, later ones over earlier ones. Nobody else reads
the environment or a configuration file.

Invariant: a `Settings` that exists has passed every check; each setting carries its own one-line
description, from which `magnetar config show` and docs/configuration.md are written.
"""

from magnetar.settings.load import Loaded, load
from magnetar.settings.registry import FLAGS, SETTINGS, Setting, Settings
from magnetar.settings.toml import write_toml

__all__ = ["FLAGS", "SETTINGS", "Loaded", "Setting", "Settings", "load", "write_toml"]
