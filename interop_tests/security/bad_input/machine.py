"""What state machines of all protocols share that say what they like on connections: which proofs
there are, choosing among open connections, and the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from interop_tests.hostile.conftest import MIB

from .proofs import TOKENS
from .scram_client import ScramClient

SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SMALL: Final = [one for one in TOKENS if len(one.said) < 10_000]
RIGHT: Final = [one for one in SMALL if one.role is not None]
THREE: Final = st.sampled_from(RIGHT[:3])
PROOFS: Final = st.one_of(*[THREE] * 4, st.sampled_from(SMALL))
WHICH: Final = st.integers(0, 5)
GROWTH_MAX: Final = 48 * MIB
"""Of the server's memory: its own caches fill, and nothing else is kept."""
KINDS: Final = (*["right"] * 7, "replayed", "nonce", "first", "empty")
"""Of messages that end an exchange of SCRAM."""


class Connection(Protocol):
    """One connection, and what the model knows of it."""

    peer: Any
    closed: bool


Talk = TypeVar("Talk", bound=Connection)


class Machine(RuleBasedStateMachine, Generic[Talk]):
    """Rules choose among the connections that are open."""

    def __init__(self, server: Any, works: Callable[[], None], outcomes: Counter[str]) -> None:
        super().__init__()
        self._server, self._works, self._outcomes = server, works, outcomes
        self._all: list[Talk] = []
        self._recorded = b"c=biws,r=nonce0,p=AAAA"
        """The proof of an exchange that has succeeded."""

    def _open(self, chosen: Callable[[Talk], Any] = lambda _: True) -> list[Talk]:
        return [talk for talk in self._all if not talk.closed and chosen(talk)]

    def _one(self, which: int, chosen: Callable[[Talk], Any] = lambda _: True) -> Talk:
        talks = self._open(chosen)
        return talks[which % len(talks)]

    def _final(self, exchange: ScramClient, kind: str) -> bytes:
        """What is said instead of the proof, or the proof."""
        return {
            "right": exchange.final,
            "replayed": lambda: self._recorded,
            "nonce": lambda: exchange.final(nonce="nonce0"),
            "first": exchange.first,
            "empty": lambda: b"",
        }[kind]()

    def teardown(self) -> None:
        for talk in self._all:
            talk.peer.socket.close()
        self._works()


def run_machine(
    machine: type[Machine[Any]],
    server: Any,
    beside: Any,
    examples: int = 12,
    phases: tuple[Phase, ...] = (Phase.generate,),
) -> Counter[str]:
    """The same each time; how often it came across what."""
    outcomes: Counter[str] = Counter()
    run_state_machine_as_test(
        lambda: machine(server, beside.works, outcomes),
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            phases=phases,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return outcomes
