"""A whole box, emulated: Debian for arm64, systemd, a slow card, and power cuts."""
