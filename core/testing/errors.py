"""What a front's table of errors has to name."""

from magnetar.core.kernel import errors


def leaves() -> set[type[errors.BrokerError]]:
    """Of core.errors alone: whoever derives from a leaf elsewhere goes by that leaf's code."""
    named = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.BrokerError)
    }
    return {kind for kind in named if not named & set(kind.__subclasses__())}
