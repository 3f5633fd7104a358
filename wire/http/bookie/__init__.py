"""The HTTP paths of a bookie, as Apache BookKeeper's have them."""
