"""Sends messages to people, by any web service or by mail."""
