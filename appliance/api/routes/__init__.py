"""The routes and their handlers, in one file per subject.

A file is named after the first segment of its paths. These files have other or additional paths:

- `adapters`: `/discovery`
- `automations`: `/executions`, `/scripts`
- `backup`: `/diagnostics/backup`
- `documents`: `/openapi.json`, `/asyncapi.json`
- `history`: `/audit`, `/devices/<device_id>/history`
- `keys`: `/auth`
- `log`: `/diagnostics/log`
- `sections`: `/kinds`, `/files/sections`
- `status`: `/diagnostics/status`, `/diagnostics/state`
- `system`: `/health`, `/ready`, `/capabilities`
- `variables`: `/timers`
"""
