"""Writes settings as TOML: the effective configuration with comments and origins. Pure.

It writes only the types that settings have: text, numbers, booleans, lists and tables of text.
Loading the output gives the same settings, but for keys that stand in them.
"""

import json
from typing import Any

from magnetar.settings.load import ORIGIN_DEFAULT, Loaded
from magnetar.settings.registry import SECTIONS, SETTINGS


def write_toml(loaded: Loaded) -> str:
    """The whole configuration, each setting under its description and with its origin."""
    lines = []
    for section, kind in SECTIONS.items():
        lines += ["", f"[{section}]", f"# {(kind.__doc__ or '').splitlines()[0]}"]
        for setting in SETTINGS.values():
            if setting.section != section:
                continue
            value = getattr(getattr(loaded.settings, section), setting.key)
            origin = loaded.origins.get(setting.path, ORIGIN_DEFAULT)
            lines += [
                "",
                f"# {setting.description}",
                f"{setting.key} = {toml_value(shown(value))}  # {origin}",
            ]
    return "\n".join(lines[1:]) + "\n"


def shown(value: Any) -> Any:
    """A setting as people see it: a key that is in the setting itself stays secret."""
    if not isinstance(value, str):
        return value
    if value.startswith("data:"):
        return "data:..."
    scheme, found, rest = value.partition("://")
    authority, slash, path = rest.partition("/")
    if found and "@" in authority:  # a name and a password of a document's server
        return f"{scheme}://...@{authority.rpartition('@')[2]}{slash}{path}"
    return value


def toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, except that TOML requires DEL to be escaped
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, dict):
        pairs = (f"{toml_value(key)} = {toml_value(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    return repr(value)


def write_tables(tables: dict[str, dict[str, Any]]) -> str:
    """Plain TOML of some settings, to start a process with."""
    lines = []
    for section, values in tables.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {toml_value(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"
