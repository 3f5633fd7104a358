"""What all connections together may hold in memory, and what happens at the limit."""
