"""Maven projects of the tests."""

from pathlib import Path

from interop_tests import builds


def build(folder: Path) -> Path:
    """Compile what is in `folder` and gather its jars; where Maven put all that."""

    def make(_: Path) -> None:
        builds.run([found("mvn"), "-q", "-B", "clean", "package"], folder)

    return builds.once(folder, [folder / "pom.xml", *folder.glob("src/**/*.java")], make)


def found(program: str) -> str:
    return builds.found(program, "a JDK and Maven")
