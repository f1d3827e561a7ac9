"""`python -m appliance` is `lares`."""

import gc
import sys

gc.disable()  # Collection starts again when the command has been imported: almost nothing before that is garbage

from appliance.cli.main import main  # noqa: E402

sys.exit(main())
