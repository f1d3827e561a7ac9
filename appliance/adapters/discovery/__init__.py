"""Finds devices that announce themselves by mDNS or SSDP in the local network. A search runs only on request."""
