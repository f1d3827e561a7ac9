"""`python -m appliance` is `lares`."""

import gc
import sys

gc.disable()  # Garbage collection stays off while the command is imported, because imports leave almost no garbage

from appliance.cli.main import main  # noqa: E402

sys.exit(main())
