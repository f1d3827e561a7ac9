"""Fakes and other code that tests share."""
