"""What holds for every test, wherever pytest is started.

`core`, `wire` and `bookie` are packages in `magnetar` (docs/decisions/0016). Their tests are
collected through the links in `magnetar/`, so that a module has one name, the one it is installed
by; `pytest core/ledger` means `pytest magnetar/core/ledger`.

Property tests give the same answer every time, on a busy machine too. With MAGNETAR_EXPLORE set
they look for cases that nobody has seen yet (`make explore`).
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from magnetar.core.native.sources import prefer_sources

ROOT = Path(__file__).parent
PACKAGE = ROOT / "magnetar"
STEADY = not os.environ.get("MAGNETAR_EXPLORE")

prefer_sources("these are unit tests")  # in this process; the servers of tests run what is compiled

settings.register_profile(
    "steady",
    deadline=None,
    derandomize=STEADY,
    suppress_health_check=[HealthCheck.too_slow],  # of the machine, that is
)
settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    config.args[:] = [_through_the_link(config, given) for given in config.args]


def _through_the_link(config: pytest.Config, given: str) -> str:
    path, colons, test = given.partition("::")
    whole = Path(os.path.abspath(config.invocation_params.dir / path))
    if whole.is_relative_to(ROOT) and whole != ROOT:
        within = whole.relative_to(ROOT)
        if (PACKAGE / within.parts[0]).is_symlink():
            return f"{PACKAGE / within}{colons}{test}"
    return given
