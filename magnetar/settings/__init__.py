"""All settings of the server, as one frozen, typed value.

Sections are Structs (`server.py`, `storage.py`, `broker.py`, `kafka.py`); `load` merges the
defaults, one TOML file, the environment and the command line's flags; later ones win. No other
code reads the environment or a configuration file.

Invariant: a `Settings` that exists has passed every check. Each setting has a one-line
description, which `magnetar config show` and docs/configuration.md print.
"""

from magnetar.settings.load import Loaded, load
from magnetar.settings.registry import FLAGS, SETTINGS, Setting, Settings
from magnetar.settings.toml import write_toml

__all__ = ["FLAGS", "SETTINGS", "Loaded", "Setting", "Settings", "load", "write_toml"]
