"""A whole emulated box: Debian for arm64, systemd, a slow card, and power cuts."""
