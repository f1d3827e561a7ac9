"""Discovery: what announces itself in the local network by mDNS or SSDP, asked only when somebody wants to know."""
