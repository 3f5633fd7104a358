"""franz-go's clients, in scenes of their own (`main.go`), built with the Go that is here."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD_SECONDS = 300
SCENE_SECONDS = 90


@pytest.fixture(scope="session")
def scenes(tmp_path_factory):
    """The program with all scenes."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed (golang.org; franz-go needs 1.25)")
    made = tmp_path_factory.mktemp("go") / "scenes"
    done = subprocess.run(
        [go, "build", "-o", made, "."],
        cwd=Path(__file__).parent,
        env={**os.environ, "CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.parametrize("scene", ["classic-group"])
def test_scene(scenes, server, scene):
    done = subprocess.run(
        [scenes, scene, server.bootstrap_servers, scene],
        capture_output=True,
        text=True,
        timeout=SCENE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
