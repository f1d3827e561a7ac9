"""State that survives a power cut: one document in a snapshot and a journal."""
