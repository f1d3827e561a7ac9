"""The hub process: start, API server, control socket, signals, and systemd."""
