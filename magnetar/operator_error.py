"""Trouble that the operator can mend: one clear sentence, exit code 2, no traceback.

Not for what peers do wrong (`core.errors.WireError`), nor for our own mistakes (`assert`). Code
below the composition root does not know this class: `magnetar` translates at the seam.
"""


class OperatorError(Exception):
    """Its text is the whole sentence, which is printed alone."""
