"""Discovery: devices that announce themselves by mDNS or SSDP in the local network. It runs only on request."""
