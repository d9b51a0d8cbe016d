"""People: who they are, what they may do."""
