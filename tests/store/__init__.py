"""Proofs of the store."""
