"""HTTP to vendors' devices, with limits for times and sizes.

Read `client` (requests to one address), `access` (credentials and certificates), and `errors`. `web_socket` and
`server_events` receive pushed messages. All adapters share the sessions of `session`, which opens connections with
`connector` and `resolver`. `plain_requests` sends requests without aiohttp's own objects.
"""
