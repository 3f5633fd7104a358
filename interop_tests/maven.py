"""Maven projects of the tests."""

from pathlib import Path

from interop_tests import builds

STAGE = Path(__file__).parent / "stage" / "java"
"""What the projects share; each `pom.xml` adds it to its sources."""


def build(folder: Path) -> Path:
    """Compile what is in `folder` and gather its jars; where Maven put all that."""

    def make(_: Path) -> None:
        builds.run([found("mvn"), "-q", "-B", "clean", "package"], folder)

    sources = [folder / "pom.xml", *folder.glob("src/**/*.java"), *STAGE.glob("**/*.java")]
    return builds.once(folder, sources, make)


def found(program: str) -> str:
    return builds.found(program, "a JDK and Maven")
