"""Groups of the classic protocol: JoinGroup, SyncGroup, and a leader among the members."""
