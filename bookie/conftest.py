"""Tests of the storage tier wait for real disks, so hypothesis must not time them."""

from hypothesis import settings

settings.register_profile("disk", deadline=None)
settings.load_profile("disk")
