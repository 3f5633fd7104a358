"""Reads JSON as Java's programs do, whose library (Jackson) converts numbers, texts and booleans
into each other. Pure.

    a whole number    from a fraction, which is cut off, and from a text of digits
    a fraction        from a number, and from a text of one
    a boolean         from a whole number, 0 for false, and from the texts `true` and `false`
    a text            from a number or a boolean
    each but a text   is 0 or false for null and the texts `` and `null`; texts may have spaces
                      around them

Fields that the reader does not know are passed over. All of it as Apache's broker 4.2.4 was seen to
read the bodies of requests.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

_DIGITS: Final = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_NOTHING: Final = (None, "", "null")
_WORDS: Final = {"true": True, "True": True, "TRUE": True,
                 "false": False, "False": False, "FALSE": False}  # fmt: skip


def fields_of(sent: Any, kind: type[Struct]) -> Any:
    """The fields of `kind` in a JSON object, converted where Java converts. What is no object, or
    cannot be converted, stays as it is, and is refused by whoever reads it strictly.
    """
    if not isinstance(sent, dict):
        return sent
    return {
        field.encode_name: CONVERT.get(field.type, _same)(sent[field.encode_name])
        for field in msgspec.structs.fields(kind)
        if field.encode_name in sent
    }


def _same(value: Any) -> Any:
    return value


def _bare(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def whole(value: Any) -> Any:
    value = _bare(value)
    if value in _NOTHING:
        return 0
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value


def fraction(value: Any) -> Any:
    value = _bare(value)
    if value in _NOTHING:
        return 0.0
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def truth(value: Any) -> Any:
    value = _bare(value)
    if value in _NOTHING:
        return False
    if type(value) is int:
        return value != 0
    return _WORDS.get(value, value) if isinstance(value, str) else value


def text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def whole_or_none(value: Any) -> Any:
    """Of a field that may be null (`Integer` and `Long`)."""
    return None if _bare(value) in _NOTHING else whole(value)


CONVERT: Final[Mapping[Any, Callable[[Any], Any]]] = {
    int: whole,
    int | None: whole_or_none,
    float: fraction,
    bool: truth,
}
