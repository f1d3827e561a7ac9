"""`python -m appliance` is `lares`."""

import gc
import sys

gc.disable()  # until the command is imported: next to nothing of that is garbage

from appliance.cli.main import main  # noqa: E402

sys.exit(main())
