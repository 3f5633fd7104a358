"""The messages that we know, by what they are about; declarations and nothing else."""
