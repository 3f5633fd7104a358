"""Property tests that give the same answer every time, on a busy machine too."""

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
