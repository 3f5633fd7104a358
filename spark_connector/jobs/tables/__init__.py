"""Tables that are kept up to date, over a kill at any moment."""
