"""What `setup.py` of a checkout has compiled as it is (docs/decisions/0019)."""

from __future__ import annotations

import ast
from pathlib import Path


def hot_modules(checkout: Path) -> list[str]:
    """Their names, without `magnetar.`."""
    for statement in ast.parse((checkout / "setup.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "HOT":
            return list(ast.literal_eval(statement.value))
    raise LookupError("setup.py has no HOT")
