"""Cursors: what one subscription has acknowledged of a log."""
