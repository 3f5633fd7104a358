"""What pyproject.toml cannot say: where packages are, what ships of them, and what is compiled.

The folders `core`, `wire` and `bookie` stand at the top of the repository and are installed as
`magnetar.core`, `magnetar.wire` and `magnetar.bookie` (docs/decisions/0016).

The compiled twins of pure functions (docs/decisions/0008) are optional: without a C compiler or
Python's headers the installation goes on without them.
"""

from setuptools import Extension, find_packages, setup

ROOMS = ("core", "wire", "bookie")
"""Folders at the top that are installed inside `magnetar`."""
SHARED = ["core/native/octets.pxd"]
TWINS = [
    "core.entry.compiled",
    "core.link.compiled",
    "bookie.format.compiled",
    "wire.kafka.compiled",
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


setup(
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
