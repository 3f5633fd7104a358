"""Who somebody is, and what they may do: one answer for every protocol."""
