"""What readers and judges of definitions share, whatever these are written in. Pure.

Definitions are of clients: they may be no JSON, of any depth, and made to take long. Raises
`IncompatibleSchema` with a sentence for their author.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from magnetar.core.kernel.errors import IncompatibleSchema

SHOWN_MAX: Final = 80
"""Letters of a hostile text in an answer."""
STEPS_MAX: Final = 50_000
"""Types, or pairs of them, that one comparison looks at."""
DEPTH_MAX: Final = 150
"""How deep it follows types into types; a level takes four of Python's frames at most."""
LOOKED_AT_PER_STEP: Final = 64
"""Names, values or branches that are looked through in the time of one step."""


def json_of(definition: bytes) -> Any:
    """The JSON that a definition is."""
    try:
        return msgspec.json.decode(definition)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise IncompatibleSchema(f"the definition is no JSON: {error}") from error


def shown(value: object) -> str:
    """A part of a definition in a sentence."""
    try:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    except RecursionError:
        text = "what is nested too deeply"
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


class Effort:
    """How much longer a comparison may take, and how deep it may go: no schema holds up the server.

    Types that refer to each other in a long chain are as deep as the chain, however flat they are
    written, and pairs of types may be more than the types of both schemas.
    """

    __slots__ = ("_depth", "_steps")

    def __init__(self, steps_max: int = STEPS_MAX, depth_max: int = DEPTH_MAX) -> None:
        self._steps = steps_max
        self._depth = depth_max

    def __enter__(self) -> None:
        """Go one type deeper."""
        self._depth -= 1
        self.spend(1)
        if self._depth < 0:
            raise IncompatibleSchema("types of the schema refer to each other in too many steps")

    def look_through(self, count: int) -> None:
        """Look at so many names, values or branches, which are not types to be compared."""
        self.spend(count // LOOKED_AT_PER_STEP)

    def spend(self, steps: int) -> None:
        """Do what takes so many steps."""
        self._steps -= steps
        if self._steps < 0:
            raise IncompatibleSchema("the schema is too large to be compared")

    def __exit__(self, *_error: object) -> None:
        self._depth += 1
