"""Who gets which entries: pure decisions, carried out by the subscription."""
