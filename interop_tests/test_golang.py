"""An old Go fetches the newer one that builds the tests' programs."""

import os
from pathlib import Path

import pytest

from interop_tests import golang

OLD_GO = """#!/bin/sh
# as Go 1.19, to which 1.26.0 in a go.mod is an error, also in the folders below it
case "$1" in
env) echo go1.19.8; echo linux; echo amd64 ;;
mod)
    folder=$PWD
    while [ ! -f "$folder/go.mod" ]; do folder=$(dirname "$folder"); done
    if grep -Eq '^go [0-9]+[.][0-9]+[.]' "$folder/go.mod"; then
        echo "go: errors parsing go.mod: invalid go version, must match format 1.23" >&2
        exit 1
    fi
    echo "{\\"Dir\\": \\"$RELEASE\\"}" ;;
esac
"""


def test_below_a_go_mod_that_it_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, release, module = (tmp_path / name for name in ("programs", "release", "module"))
    for folder in (programs, release / "bin", module):
        folder.mkdir(parents=True)
    (programs / "go").write_text(OLD_GO)
    (programs / "go").chmod(0o755)
    (release / "bin" / "go").write_text(
        '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done; echo built >"$2"\n'
    )
    (module / "go.mod").write_text("module scenes\n\ngo 1.26.0\n")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RELEASE", str(release))

    assert golang.build(module).read_text() == "built\n"
