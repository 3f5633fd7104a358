"""The fronts, one folder per protocol. They import core and never each other."""
