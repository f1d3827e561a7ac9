"""Stand-ins and helpers that tests share."""
