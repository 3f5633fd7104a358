"""A value that does not fit its schema. Pure."""

from __future__ import annotations


class Misfit(Exception):
    """Says where in the value, as `$.a.b`, and why."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place

    def __str__(self) -> str:
        return f"{self.reason} - at `${self.place}`" if self.place else self.reason

    def inside(self, name: str) -> Misfit:
        """The same, seen from the struct that has it in a field."""
        return Misfit(self.reason, f".{name}{self.place}")
