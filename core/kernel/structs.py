"""Structs with options, for classes in modules that are compiled as they are (docs/decisions/0019).

mypyc drops what a class statement says beside its bases. A struct inherits its options, so a class
that inherits from one of these has them either way. It repeats them for mypy, and for its readers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(**_options: bool) -> Callable[[type], type]:
        """Tell mypyc something of a class; `acyclic` is what `gc=False` is to a struct. The source
        needs nothing of it.
        """
        return lambda decorated: decorated


class FrozenStruct(Struct, frozen=True):
    """A value: it does not change, and has a hash."""


class LeafStruct(Struct, gc=False):
    """Part of no reference cycle, so that the garbage collector need not look at it."""


class FrozenLeafStruct(Struct, frozen=True, gc=False):
    """Both."""
