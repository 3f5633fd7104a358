"""Property tests that give the same answer every time, on a busy machine too.

With MAGNETAR_EXPLORE set they look for what nobody has found yet (`make explore`).
"""

import os

from hypothesis import settings

STEADY = not os.environ.get("MAGNETAR_EXPLORE")

settings.register_profile("steady", deadline=None, derandomize=STEADY)
settings.load_profile("steady")
