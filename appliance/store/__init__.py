"""What outlives the power: one document in a snapshot and a journal."""
