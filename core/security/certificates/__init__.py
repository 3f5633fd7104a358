"""Client certificates as proofs of identity: the names in them, and who vouches for these."""
