"""All cases by their names. Pure."""

from collections.abc import Sequence

from bench.drive.cases import Case, Protocol
from bench.drive.kafka_cases import KAFKA_CASES
from bench.drive.mqtt_cases import MQTT_CASES
from bench.drive.pulsar_cases import PULSAR_CASES

CASES = {case.name: case for case in [*PULSAR_CASES, *KAFKA_CASES, *MQTT_CASES]}


class UnknownCaseError(Exception):
    """No case has that name, and no group of cases."""


def groups() -> dict[str, list[Case]]:
    """Names for many at once."""
    cases = list(CASES.values())
    return {
        "all": cases,
        "goals": [case for case in cases if case.goal],
        **{
            spoken.value: [case for case in cases if case.protocol is spoken] for spoken in Protocol
        },
    }


def chosen(names: Sequence[str]) -> list[Case]:
    """Cases by their names and the names of groups, in the order of the tables."""
    known = groups()
    wanted = {case.name for name in names for case in known.get(name, ())} | set(names)
    unknown = [name for name in names if name not in CASES and name not in known]
    if unknown:
        raise UnknownCaseError(f"no such case: {', '.join(unknown)}; there are: {', '.join(CASES)}")
    return [case for name, case in CASES.items() if name in wanted]
