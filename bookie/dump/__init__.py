"""What stands in a bookie's files, for people who look: of damaged ones too. Pure."""
