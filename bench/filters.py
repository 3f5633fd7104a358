#!/usr/bin/env python3
"""The cost of finding who gets a message, with 100,000 filters that have wildcards.

    .venv/bin/python bench/filters.py
    .venv/bin/python bench/filters.py --filters 1000000

Every name is new, so the cache of recipients by topic finds none; for a name that it knows, the
last line has the cost. A name matches as many filters as its row says, each of another client, and
reaches nodes of many more. The best of ten rounds counts, in CPU time: this machine has other work.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from magnetar.wire.mqtt.delivery.matcher import Matcher, TopicSubscription

MATCHES: Final = (0, 1, 2, 5, 10, 50)
NAMES: Final = 2_000
ROUNDS: Final = 10


def matcher_of(filters: int) -> Matcher[int]:
    """Most filters are of one device each; names under `area-N` match N, of three shapes."""
    matcher: Matcher[int] = Matcher()
    for number in range(filters):
        end = "#" if number % 10 == 0 else "state"
        matcher.add(number, TopicSubscription(f"site/+/device-{number}/{end}", 1))
    shapes = ("site/area-{}/+/state", "site/area-{}/#", "+/area-{}/+/state")
    for many in MATCHES:
        for client in range(many):
            filter = shapes[client % len(shapes)].format(many)
            matcher.add(-1 - client, TopicSubscription(filter, client % 3))
    return matcher


def microseconds(matcher: Matcher[int], names: Sequence[bytes]) -> float:
    """The cost for one name."""
    begun = time.process_time()
    for name in names:
        matcher.targets(name)
    return (time.process_time() - begun) / len(names) * 1e6


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The cost of matching names with filters.")
    parser.add_argument("--filters", type=int, default=100_000)
    matcher = matcher_of(parser.parse_args(arguments).filters)
    print(f"{matcher.count:,} subscriptions")
    for many in MATCHES:
        rounds = [
            [f"site/area-{many}/{number}-{name}/state".encode() for name in range(NAMES)]
            for number in range(ROUNDS)
        ]
        found = len(matcher.targets(rounds[0][0]))
        cost = min(microseconds(matcher, names) for names in rounds)
        goal = 5 + found
        verdict = "" if cost <= goal else "  MISSED"
        print(f"{found:4} matches: {cost:6.2f} us, goal {goal} us{verdict}")
    known = min(microseconds(matcher, rounds[-1][-100:]) for _ in range(ROUNDS))
    print(f"a name that is known: {known:.2f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
