"""What the packets of one connection mean."""
