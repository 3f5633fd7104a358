r"""The subject of a certificate, written as Java writes it (RFC 2253, `X500Principal.getName()`).

Kafka's rules and `super.users` are patterns over that text, and Pulsar takes its first `CN`, so
both get here what they would get there:

- the last part of the name comes first, with `,` between parts and `+` within one;
- `CN C L ST O OU STREET DC UID` have their keywords; others are `1.2.840.113549.1.9.1=#1613...`,
  the hexadecimal form of what the certificate holds (`AVA.toRFC2253String` of JDK 21);
- `, = + < > # ; " \` and spaces at either end are escaped by a backslash.

Only text of two bytes or four a letter (BMPString, UniversalString) is decoded as such, where Java
would show its bytes. Pure; it reads the DER of a name that TLS has verified already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

KEYWORDS: Final[Mapping[str, str]] = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
"""Keywords by object identifier."""
ENCODINGS: Final[Mapping[int, str]] = {
    0x0C: "utf-8",  # UTF8String
    0x13: "utf-8",  # PrintableString
    0x14: "utf-8",  # T61String
    0x16: "utf-8",  # IA5String
    0x1B: "utf-8",  # GeneralString
    0x1C: "utf-32-be",  # UniversalString
    0x1E: "utf-16-be",  # BMPString
}
"""How the kinds of text are encoded, by DER's tag."""
ESCAPED: Final = frozenset(',=+<>#;"\\')
SPACE: Final = "\\ "
SEQUENCE, SET, OBJECT_IDENTIFIER = 0x30, 0x31, 0x06


class Attribute(NamedTuple):
    """One assertion of a name, such as `CN=ali`."""

    identifier: str
    tag: int
    value: bytes
    encoded: bytes
    """The value with its tag and length."""

    @property
    def text(self) -> str | None:
        """The value, if it is text; raises ValueError if its bytes are none."""
        encoding = ENCODINGS.get(self.tag)
        return self.value.decode(encoding) if encoding is not None else None


DistinguishedName = list[list[Attribute]]
"""In the order of the certificate, the most general part first."""


def parsed(der: bytes) -> DistinguishedName:
    """A name from its DER; raises ValueError."""
    found = []
    for part in _inside(SEQUENCE, der):
        attributes = []
        for each in _inside(SET, part):
            identifier, value = _inside(SEQUENCE, each)
            tag, body, _ = _element(value)
            attributes.append(Attribute(_identifier(identifier), tag, body, value))
        found.append(attributes)
    return found


def rfc2253(name: DistinguishedName) -> str:
    """The text of a name; raises ValueError."""
    return ",".join("+".join(map(_written, part)) for part in reversed(name))


def common_name(name: DistinguishedName) -> str:
    """The most special `CN`, as Pulsar's `AuthenticationProviderTls` takes it; empty if there is
    none.
    """
    for part in reversed(name):
        for attribute in part:
            if KEYWORDS.get(attribute.identifier) == "CN" and (text := attribute.text):
                return text
    return ""


def _written(attribute: Attribute) -> str:
    keyword, text = KEYWORDS.get(attribute.identifier), attribute.text
    if keyword is None or text is None:
        return f"{keyword or attribute.identifier}=#{attribute.encoded.hex()}"
    escaped = "".join(["\\" + letter if letter in ESCAPED else letter for letter in text])
    before = len(escaped) - len(escaped.lstrip(" "))
    after = len(escaped) - len(escaped.rstrip(" "))
    if before == len(escaped):
        after = 0
    body = escaped[before : len(escaped) - after]
    return f"{keyword}={before * SPACE}{body}{after * SPACE}"


# -- DER (X.690) ------------------------------------------------------------------------------


def _element(der: bytes) -> tuple[int, bytes, bytes]:
    """Tag and body of the first element, and what follows it."""
    if len(der) < 2:
        raise ValueError("a name is cut short")
    tag, size, at = der[0], der[1], 2
    if size & 0x80:
        at += size & 0x7F
        size = int.from_bytes(der[2:at], "big")
    if len(der) < at + size:
        raise ValueError("a name is cut short")
    return tag, der[at : at + size], der[at + size :]


def _inside(expected: int, der: bytes) -> Iterator[bytes]:
    """The encoded elements within one."""
    tag, body, _ = _element(der)
    if tag != expected:
        raise ValueError("it is no name")
    while body:
        _, _, rest = _element(body)
        yield body[: len(body) - len(rest)]
        body = rest


def _identifier(der: bytes) -> str:
    tag, body, _ = _element(der)
    if tag != OBJECT_IDENTIFIER:
        raise ValueError("it is no name")
    numbers, number = [], 0
    for byte in body:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers:
        raise ValueError("it is no name")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
