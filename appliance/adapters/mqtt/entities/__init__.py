"""What announced entities show and take: one module for each sort, one table of all."""
