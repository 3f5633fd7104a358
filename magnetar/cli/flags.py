"""Flags that set settings, and the conversion of a command line to settings.

Invariant: flags, their types and their help come from the list of settings (`settings.FLAGS`).
"""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, get_args

import click

from magnetar.operator_error import OperatorError
from magnetar.settings import FLAGS, SETTINGS, Loaded, load

CONFIG_VARIABLE = "MAGNETAR_CONFIG"
SWITCHES = {
    "--no-sync": "Acknowledge messages before they are on disk: a killed server still loses "
    "nothing, but a power cut or a crash of the machine loses what was not written yet.",
}
"""Help of the flags that turn a setting off, since its description says what it does when on."""


def whole_number(low: int, high: int | None = None) -> click.IntRange:
    """The type of an option; Click says of a word that it is no "integer range"."""
    kind = click.IntRange(low, high)
    kind.name = "whole number"
    return kind


def number(low: float) -> click.FloatRange:
    """The same, of seconds for example."""
    kind = click.FloatRange(low)
    kind.name = "number"
    return kind


def port_number() -> click.IntRange:
    """A port to listen at; 0 for any free one."""
    return whole_number(0, 65_535)


def setting_options(flags: Collection[str] = FLAGS) -> list[click.Parameter]:
    """`--config`, and one option for each of these flags."""
    config = click.Option(
        ["--config"],
        metavar="FILE",
        envvar=CONFIG_VARIABLE,
        help=f"TOML file with settings (also {CONFIG_VARIABLE}).",
    )
    return [config, *(_option(flag, FLAGS[flag]) for flag in flags)]


def _option(flag: str, path: str) -> click.Option:
    setting = SETTINGS[path]
    if setting.bare_type is bool:
        return click.Option([flag], is_flag=True, help=SWITCHES[flag])
    return click.Option([flag], metavar=_metavar(setting.bare_type), help=setting.description)


def _metavar(kind: Any) -> str:
    if kind is int:
        return "N"
    return "|".join(get_args(kind)) or "TEXT"


def load_settings(config: str | None, options: Mapping[str, Any]) -> Loaded:
    """The settings of one command, from the file, the environment and its options."""
    flags = {}
    for flag in FLAGS:
        value = options.get(flag.removeprefix("--").replace("-", "_"))
        if value is True:  # a switch: there are only `--no-...` ones
            flags[flag] = "false"
        elif isinstance(value, str):
            flags[flag] = value
    return load(_read(config) if config else "", config or "", os.environ, flags)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise OperatorError(f"cannot read the configuration {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise OperatorError(f"the configuration {path} is not UTF-8 text") from None
