"""The hub process: start, API server, control socket, first key, signals, and systemd."""
