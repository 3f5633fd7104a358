"""Merges the sources of settings: defaults, a TOML file, the environment, flags. Later ones win.

Pure: it takes texts and mappings, and reads neither files nor the environment itself. Any mistake
is one `OperatorError` that names its source, the path of the setting, and what is expected.

A text of the TOML file that begins with `{folder}/` is a path within the folder of that file, so
that both can be moved together; other relative paths are those of the process.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Final, get_origin

import msgspec
from msgspec import Struct

from magnetar.operator_error import OperatorError
from magnetar.settings.check import check
from magnetar.settings.registry import FLAGS, SECTIONS, SETTINGS, Setting, Settings

PREFIX: Final = "MAGNETAR_"
NOT_SETTINGS: Final = (
    "MAGNETAR_CONFIG",
    "MAGNETAR_TOKEN",
    "MAGNETAR_URL",
    "MAGNETAR_METADATA_URI",
    "MAGNETAR_APT",
    "MAGNETAR_PURE",
    "MAGNETAR_EXPLORE",
)
"""Read by the command line, by scripts/, by `core.native` and by property tests, not here."""
FOREIGN_PREFIXES: Final = ("MAGNETAR_SERVICE_", "MAGNETAR_PORT")
"""Kubernetes sets these in every container of a namespace with a service named `magnetar`."""

ORIGIN_DEFAULT: Final = "default"
FOLDER: Final = "{folder}/"
NUMBER_MAX: Final = 1e9
"""Thirty years in seconds: a larger float is a mistake, such as `inf`."""


class Loaded(Struct, frozen=True):
    """The settings in force, and the source of each one that is not a default."""

    settings: Settings
    origins: Mapping[str, str]


class _Given(Struct, frozen=True):
    """One setting from one source."""

    setting: Setting
    value: Any
    origin: str
    spelled: bool = False
    """Whether the value is text to be parsed as the setting's type."""


def load(
    toml: str = "",
    toml_name: str = "magnetar.toml",
    environment: Mapping[str, str] = MappingProxyType({}),
    flags: Mapping[str, str] = MappingProxyType({}),
) -> Loaded:
    """The effective settings; `flags` maps flags such as `--data-dir` to their typed values."""
    values: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    origins: dict[str, str] = {}
    sources = (_from_toml(toml, toml_name), _from_environment(environment), _from_flags(flags))
    for source in sources:
        for given in source:
            values[given.setting.section][given.setting.key] = _convert(given)
            origins[given.setting.path] = given.origin
    sections = {name: kind(**values[name]) for name, kind in SECTIONS.items()}
    settings = Settings(**sections)
    check(settings, origins)
    return Loaded(settings, origins)


def _convert(given: _Given) -> Any:
    setting = given.setting
    value = _unspell(setting, given.value) if given.spelled else given.value
    expected = setting.expected
    try:
        converted = msgspec.convert(value, setting.type, strict=not given.spelled)
    except msgspec.ValidationError:
        pass
    else:
        beyond = _beyond_use(converted)
        if not beyond:
            return converted
        expected += beyond
    raise OperatorError(f"{given.origin}: {setting.path}: expected {expected}, got {given.value!r}")


def _beyond_use(value: Any) -> str:
    """Why no setting can use a value that its type allows: too large for a timer, or a NUL."""
    if isinstance(value, float) and not abs(value) < NUMBER_MAX:
        return f", below {NUMBER_MAX:,.0f}"
    return " without NUL" if isinstance(value, str) and "\0" in value else ""


def _unspell(setting: Setting, text: str) -> Any:
    """Parse lists and tables, written `a, b` and `a=x, b=y`; msgspec reads the rest."""
    origin = get_origin(setting.bare_type)
    if origin not in (tuple, dict):
        return text
    pieces = [piece.strip() for piece in text.split(",") if piece.strip()]
    if origin is tuple:
        return pieces
    return {key.strip(): value.strip() for key, _, value in (p.partition("=") for p in pieces)}


# -- the sources ------------------------------------------------------------------------------


def _from_toml(text: str, name: str) -> Iterator[_Given]:
    import tomllib  # most servers have no file, and its patterns take 2 ms to compile

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise OperatorError(f"{name}: not valid TOML: {error}") from None
    for section, table in document.items():
        if section not in SECTIONS:
            raise _unknown(name, section, _paths_ending_in(section) or SECTIONS)
        if not isinstance(table, dict):
            raise OperatorError(f"{name}: {section}: expected a table, got {table!r}")
        for key, value in table.items():
            setting = SETTINGS.get(f"{section}.{key}")
            if setting is None:
                raise _unknown(name, f"{section}.{key}", _paths_ending_in(key) or SETTINGS)
            if get_origin(setting.bare_type) is dict and isinstance(value, dict):
                value = dict(_flat(value))
            if isinstance(value, str) and value.startswith(FOLDER):
                value = str(PurePath(name).parent / value.removeprefix(FOLDER))
            yield _Given(setting, value, name)


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """TOML reads `wire.pulsar = "debug"` without quotes as nested tables: flatten them."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _from_environment(environment: Mapping[str, str]) -> Iterator[_Given]:
    variables = {setting.variable: setting for setting in SETTINGS.values()}
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name in NOT_SETTINGS:
            continue
        if name in variables:
            yield _Given(variables[name], environment[name], name, spelled=True)
        elif not name.startswith(FOREIGN_PREFIXES):
            raise _unknown("environment", name, variables)


def _from_flags(flags: Mapping[str, str]) -> Iterator[_Given]:
    for flag, value in flags.items():
        if flag not in FLAGS:
            raise _unknown("command line", flag, FLAGS)
        yield _Given(SETTINGS[FLAGS[flag]], value, flag, spelled=True)


# -- suggestions ------------------------------------------------------------------------------


def _paths_ending_in(key: str) -> list[str]:
    """Settings with this key: the right key in the wrong section is the likeliest mistake."""
    return [path for path, setting in SETTINGS.items() if setting.key == key.replace("-", "_")]


def _unknown(origin: str, name: str, known: Iterable[str]) -> OperatorError:
    import difflib

    sentence = f"{origin}: there is no setting {name}"
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return OperatorError(f"{sentence}; did you mean {near[0]}?" if near else sentence)
