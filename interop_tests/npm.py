"""Programs in JavaScript of the tests, with the packages that they are locked to."""

import shutil
from pathlib import Path

from interop_tests import builds
from interop_tests.driver import Driver

LOCKED = ("package.json", "package-lock.json")
QUIET = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]


def driver(folder: Path, main: str, log: Path) -> Driver:
    """Plays the scenes of that file."""

    def make(target: Path) -> None:
        for name in LOCKED:
            shutil.copy(folder / name, target / name)
        builds.run([builds.found("npm", "Node and npm"), "ci", *QUIET], target)

    target = builds.once(folder, [folder / name for name in LOCKED], make)
    node = builds.found("node", "Node and npm")
    return Driver([node, str(folder / main)], log, {"NODE_PATH": str(target / "node_modules")})
