"""Verified fakes and playbooks for tests, ours and those of embedders."""
