"""`python -m appliance` is `lares`."""

import gc
import sys

gc.disable()  # Imports leave almost no garbage

from appliance.cli.main import main  # noqa: E402

sys.exit(main())
