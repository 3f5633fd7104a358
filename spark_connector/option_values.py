"""The options that users give, taken one by one and checked. Pure.

Names are in any case, as everywhere in Spark. An unknown one is an error that names the nearest: a
typing mistake would silently do something else. Required ones have no default, because Spark drops
the options of `CREATE TABLE ... USING` without a word.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

from magnetar.spark_connector.errors import OptionError

SERVICE_URL: Final = "service.url"
_DROPPED: Final = "; those of CREATE TABLE are dropped by Spark: give them as SELECT ... WITH"
_ADDRESS: Final = 'the server is found by "service.url", its HTTP address, alone'
FOREIGN: Final = {
    "admin.url": _ADDRESS,
    "kafka.bootstrap.servers": _ADDRESS,
    "includeheaders": 'the column "headers" needs none',
}
"""Options of other connectors' sources and sinks, in lower case, that have no value which could be
taken as it is, and what is said of each.
"""
_CLIENTS: Final = ("kafka.", "pulsar.")
"""How settings of clients begin, which other connectors pass on."""
_NO_CLIENT: Final = (
    'no client of this kind is used; "authPluginClassName" and "authParams" say who a query is, '
    'and "service.url" with https:// is TLS'
)
_UNITS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class OptionNames:
    """The options that there are: their names, other names for them, and what Spark adds."""

    def __init__(
        self,
        names: tuple[str, ...],
        aliases: Mapping[str, str],
        ignored: tuple[str, ...],
        foreign: Mapping[str, str] = FOREIGN,
    ) -> None:
        """`aliases` are in lower case; what begins with one of `ignored` is passed over; `foreign`
        is like `FOREIGN`.
        """
        self.known = {name.lower(): name for name in names}
        self._aliases = aliases
        self._ignored = ignored
        self._foreign = foreign

    def given(self, options: Mapping[str, str]) -> OptionValues:
        """Check the names of what is given."""
        found: dict[str, str] = {}
        for name, value in options.items():
            key = name.lower()
            if key.startswith(self._ignored):
                continue
            known = self._aliases.get(key, key)
            if known not in self.known:
                raise OptionError(f'there is no option "{name}"{self._hint(known)}')
            if known in found:
                raise OptionError(f'option "{self.known[known]}" is given twice, under two names')
            found[known] = value
        return OptionValues(self, found)

    def _hint(self, unknown: str) -> str:
        """What may have been meant, as the end of a sentence; an alias is told by its option."""
        if told := self._foreign.get(unknown):
            return f": {told}"
        if near := difflib.get_close_matches(unknown, [*self.known, *self._aliases], 1):
            return f'; did you mean "{self.known[self._aliases.get(near[0], near[0])]}"?'
        return f": {_NO_CLIENT}" if unknown.startswith(_CLIENTS) else ""


class OptionValues:
    """What is given, by names in lower case."""

    def __init__(self, names: OptionNames, found: Mapping[str, str]) -> None:
        self._names = names
        self._found = found

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def text(self, name: str, default: str = "") -> str:
        return self._found.get(name, default)

    def list(self, name: str) -> tuple[str, ...]:
        """Names with commas between, each once."""
        return listed(self.text(name))

    def urls(self) -> tuple[str, ...]:
        found = self.list(SERVICE_URL)
        if not found:
            hint = "" if self._found else _DROPPED
            raise OptionError(
                f'option "{SERVICE_URL}" is missing: the HTTP address of the server{hint}'
            )
        return found

    def choice(self, name: str, values: tuple[str, ...]) -> str:
        """One of some values; the first one is the default."""
        value = self.text(name, values[0]).lower()
        if value not in values:
            raise self.wrong(name, " or ".join(values))
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        return self.choice(name, ("true", "false") if default else ("false", "true")) == "true"

    def number(self, name: str, default: int) -> int:
        text = self.text(name, str(default))
        if not text.isdecimal():
            raise self.wrong(name, "a number")
        return int(text)

    def size(self, name: str, default: str) -> int:
        """Bytes; 0 only if that is the default."""
        text = self.text(name, default).lower().removesuffix("b")
        unit = _UNITS.get(text[-1:], 1)
        digits = text if unit == 1 else text[:-1]
        if not digits.isdecimal() or (default != "0" and not int(digits)):
            raise self.wrong(name, "a size such as 64m")
        return int(digits) * unit

    def wrong(self, name: str, wanted: str) -> OptionError:
        """The error for a value that makes no sense."""
        return OptionError(f'"{self._names.known[name]}" is {wanted}, not "{self._found[name]}"')


def listed(text: str) -> tuple[str, ...]:
    """Names with commas between, each once."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
