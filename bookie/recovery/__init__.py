"""What the bookie does about damage: finds it, rebuilds what can be, says what cannot."""
