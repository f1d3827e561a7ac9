"""Components of Home Assistant's format, one file each. Read `entity` first, then `table` and any component."""
