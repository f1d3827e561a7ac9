"""Finds devices that announce themselves by mDNS or SSDP in the local network. A search runs only on request.

Read `search` (the found devices and their sections) and `scan` (sends the questions), then `mdns` with
`dns_messages`, and `ssdp`.
"""
