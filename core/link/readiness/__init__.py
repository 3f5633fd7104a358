"""Which peers are ready, who comes first, and whether others have something to do meanwhile."""
