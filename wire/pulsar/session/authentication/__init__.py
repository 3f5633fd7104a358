"""Who a client is: what it proves about itself, and about whom it speaks for."""
