r"""How ledgers are laid out below the root: the node LAYOUT, and the path of each ledger. Pure.

    2
    org.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1

The first line is the version of this text; version 1 (before BookKeeper 4.2) has a short name in
the second. Whoever writes in a cluster follows the class that is named here (`LedgerLayout.java`
and `AbstractZkLedgerManagerFactory.java` of 4.18).

    layout             class                        path of ledger 1, and of 5,000,000,000
    hierarchical       Hierarchical...              00/0000/L0001   000/0000/0050/0000/L0000
    longhierarchical   LongHierarchical...          000/0000/0000/0000/L0001   as above
    legacy             LegacyHierarchical...        00/0000/L0001   -
    flat               Flat...                      L0000000001   -
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from magnetar.core.kernel.errors import Corrupted, Unsupported

FORMAT: Final = 2
PACKAGE: Final = "org.apache.bookkeeper.meta."
SUFFIX: Final = "LedgerManagerFactory"
SHORT_ID_MAX: Final = 2**31 - 2
_TEXT: Final = re.compile(r"(\d+)\n([\w.]+)(?::(\d+))?\n?")
Splits = tuple[int, ...]
SHORT: Final[Splits] = (2, 4, 4)
LONG: Final[Splits] = (3, 4, 4, 4, 4)
FLAT: Final[Splits] = (10,)


class Layout(Struct, frozen=True):
    """One way of laying out ledgers; ids of 31 bits may have another split than longer ones."""

    name: str
    """As in `zk+NAME://`."""
    factory: str
    """Apache's class, without what all of them share."""
    short: Splits
    long: Splits | None

    def encode(self) -> bytes:
        return f"{FORMAT}\n{PACKAGE}{self.factory}{SUFFIX}:1".encode()

    def path_of(self, ledger_id: int) -> str:
        """The path of a ledger, from the root."""
        assert ledger_id >= 0
        split = self.short if ledger_id <= SHORT_ID_MAX else self.long
        if split is None:
            raise Unsupported(f"the layout {self.name} has no path for ledger {ledger_id}")
        digits = f"{ledger_id:0{sum(split)}d}"
        steps = []
        for size in split[:-1]:
            steps.append(digits[:size])
            digits = digits[size:]
        return "/".join((*steps, f"L{digits}"))

    def id_of(self, path: str) -> int | None:
        """The ledger at a path from the root; None if it is no ledger's."""
        steps = path.split("/")
        digits = "".join((*steps[:-1], steps[-1].removeprefix("L")))
        if not (digits.isascii() and digits.isdigit()):
            return None
        ledger_id = int(digits)
        if ledger_id > SHORT_ID_MAX and self.long is None:
            return None
        return ledger_id if self.path_of(ledger_id) == path else None

    def leads_to_ledgers(self, path: str) -> bool:
        """Whether paths of ledgers may go through this one."""
        steps = path.split("/")
        if not all(step.isascii() and step.isdigit() for step in steps):
            return False
        sizes = tuple(map(len, steps))
        return any(
            len(sizes) < len(split) and split[: len(sizes)] == sizes
            for split in (self.short, self.long)
            if split is not None
        )

    def belongs_to_ledgers(self, name: str) -> bool:
        """Whether a name at the root is one of ledgers, though perhaps not well formed."""
        digits = name.removeprefix("L") if self.short == FLAT else name
        return digits.isascii() and digits.isdigit()


HIERARCHICAL: Final = Layout("hierarchical", "Hierarchical", SHORT, LONG)
LAYOUTS: Final[Mapping[str, Layout]] = {
    layout.name: layout
    for layout in (
        HIERARCHICAL,
        Layout("longhierarchical", "LongHierarchical", LONG, LONG),
        Layout("legacy", "LegacyHierarchical", SHORT, None),
        Layout("flat", "Flat", FLAT, None),
    )
}
_BY_FACTORY: Final = {layout.factory: layout for layout in LAYOUTS.values()}


def decode(data: bytes) -> Layout:
    """The layout that a cluster has."""
    match = _TEXT.fullmatch(data.decode(errors="replace"))
    if match is None:
        raise Corrupted(f"LAYOUT makes no sense: {data[:100]!r}")
    version, name = int(match[1]), match[2]
    if version == 1:
        found = LAYOUTS.get(name)
    elif version == FORMAT and match[3] is not None:
        found = _BY_FACTORY.get(name.rpartition(".")[2].removesuffix(SUFFIX))
    else:
        raise Unsupported(f"LAYOUT has version {version}, this program knows 1 and {FORMAT}")
    if found is None:
        raise Unsupported(
            f"ledgers are laid out by {name}; this program knows {', '.join(LAYOUTS)}"
        )
    return found
