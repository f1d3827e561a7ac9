"""The routes and the handlers of their requests, in one file per subject.

A file has the name of the first segment of its paths. These files have other paths, or further ones:

- `adapters`: `/discovery`
- `automations`: `/executions`, `/scripts`
- `diagnostics`: `/metrics`
- `documents`: `/openapi.json`, `/asyncapi.json`
- `history`: `/audit`, `/devices/<device_id>/history`
- `keys`: `/auth`
- `rooms_groups`: `/rooms`, `/groups`
- `sections`: `/kinds`, `/files/sections`
- `status`: `/diagnostics/status`, `/diagnostics/state`
- `system`: `/health`, `/ready`, `/capabilities`
- `variables`: `/timers`
"""
