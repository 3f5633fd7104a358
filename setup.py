"""What pyproject.toml cannot say: where packages are, what ships of them, and what is compiled.

The folders `core`, `wire` and `bookie` stand at the top of the repository and are installed as
`magnetar.core`, `magnetar.wire` and `magnetar.bookie` (docs/decisions/0016).

The compiled twins of pure functions (docs/decisions/0008) are optional: without a C compiler or
Python's headers the installation goes on without them.
"""

import shutil

from setuptools import Extension, find_packages, setup
from setuptools.command.build import build
from setuptools.command.build_py import build_py

ROOMS = ("core", "wire", "bookie")
"""Folders at the top that are installed inside `magnetar`."""
SHARED = ["core/native/octets.pxd"]
TWINS = [
    "core.entry.compiled",
    "core.entry.kafka.compiled",
    "core.entry.mqtt.compiled",
    "core.link.compiled",
    "bookie.format.compiled",
    "bookie.rpc.compiled",
    "wire.kafka.compiled",
    "wire.mqtt.codec.compiled",
    "wire.pulsar.hot.compiled.reading",
    "wire.pulsar.hot.compiled.writing",
]


def packages() -> list[str]:
    """Every package that ships. Folders of tests are none: they have no `__init__.py`."""
    # the links in magnetar/ lead to the rooms: they would be found twice
    links = tuple(f"magnetar.{room}" for room in ROOMS)
    front = find_packages(include=["magnetar", "magnetar.*"])
    rooms = find_packages(include=[*ROOMS, *(f"{room}.*" for room in ROOMS)])
    return [
        *(name for name in front if not name.startswith(links)),
        *(f"magnetar.{name}" for name in rooms),
    ]


class BuildWithoutTests(build_py):
    """A conftest.py stands above the folders of tests that it serves, so in a package."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        found = super().find_package_modules(package, package_dir)
        return [module for module in found if module[1] != "conftest"]


class BuildAnew(build):
    """setuptools adds to `build/lib*` and packs all of it: what an earlier build has left there,
    and the tree has no more, would ship.
    """

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(
    cmdclass={"build": BuildAnew, "build_py": BuildWithoutTests},
    packages=packages(),
    package_dir={f"magnetar.{room}": room for room in ROOMS},
    ext_modules=[
        Extension(
            f"magnetar.{name}", [name.replace(".", "/") + ".pyx"], depends=SHARED, optional=True
        )
        for name in TWINS
    ],
    options={"build_ext": {"cython_c_in_temp": True}},  # no generated C beside the sources
)
