"""Load generators, side-by-side runs against peers, plots. See the README beside this file."""
