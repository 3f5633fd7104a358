"""How a mistake is put into the code for a while.

Each mutant replaces one function of the code under test for the length of a block, so that the code
itself has no switches. The names say what the mutated code does.
"""

from contextlib import contextmanager
from inspect import signature
from unittest.mock import patch

MUTANTS = {}
"""Functions that give the target, the attribute, and what replaces it; by their names."""


def mutant(function):
    MUTANTS[function.__name__] = function
    return function


@contextmanager
def mutated(name):
    """Have the code contain one mistake, until the end of the block."""
    target, attribute, replacement = MUTANTS[name]()
    now = getattr(target, attribute)
    if not isinstance(now, property):
        parameters = len(signature(now).parameters), len(signature(replacement).parameters)
        assert parameters[0] == parameters[1], f"{name} is behind the code: {signature(now)}"
    with patch.object(target, attribute, replacement):
        yield
