"""Structs with options, for classes in modules that are compiled as they are (docs/decisions/0019).

mypyc drops what a class statement says beside its bases. A struct inherits its options, so a class
that inherits from one of these has them either way. It repeats them for mypy, and for its readers.
"""

from __future__ import annotations

from msgspec import Struct


class FrozenStruct(Struct, frozen=True):
    """A value: it does not change, and has a hash."""


class LeafStruct(Struct, gc=False):
    """Part of no reference cycle, so that the garbage collector need not look at it."""


class FrozenLeafStruct(Struct, frozen=True, gc=False):
    """Both."""
