"""Programs in Go of the tests, and the Go that builds them.

Any Go will do that knows modules, such as the 1.19 of Debian 12: if it is older than a go.mod asks
for, it fetches one that is not, the way newer ones do by themselves: as the module that Go's
releases are too (`golang.org/toolchain`, https://go.dev/ref/mod), checked like any other module.
"""

import json
import os
import re
from pathlib import Path

from interop_tests import builds

STAGE = Path(__file__).parent / "stage"
PLAIN = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}


def build(folder: Path) -> Path:
    """The program of the module in `folder`."""
    sources = [
        path for each in (folder, STAGE) for path in (*each.glob("*.go"), *each.glob("go.*"))
    ]

    def make(target: Path) -> None:
        go = _go(_version((folder / "go.mod").read_text()), target)
        builds.run([go, "build", "-o", str(target / "scenes"), "."], folder, PLAIN)

    return builds.once(folder, sources, make) / "scenes"


def _version(text: str) -> str:
    """As a go.mod says it, or the name of a release."""
    match = re.search(r"\bgo ?(\d+\.\d+[.\d]*)", text)
    assert match is not None, text
    return match[1]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _go(version: str, folder: Path) -> str:
    """One that is not older than that."""
    here = builds.found("go", "Go")
    own, system, arch = builds.run(
        [here, "env", "GOVERSION", "GOOS", "GOARCH"], folder, PLAIN
    ).split()
    if _numbers(_version(own)) >= _numbers(version):
        return here
    module = f"golang.org/toolchain@v0.0.1-go{version}.{system}-{arch}"
    # in a module of its own: an old Go does not read a go.mod that asks for `1.26.0`
    fetching = folder / "fetching"
    fetching.mkdir()
    (fetching / "go.mod").write_text("module magnetar/interop/fetching\n")
    results = builds.run([here, "mod", "download", "-json", module], fetching, PLAIN)
    release = Path(json.loads(results)["Dir"])
    for path in (release / "bin", release / "pkg" / "tool"):  # modules have no executable files
        for each in path.rglob("*"):
            if each.is_file() and not os.access(each, os.X_OK):
                each.chmod(0o555)
    return str(release / "bin" / "go")
