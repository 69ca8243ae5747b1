"""``python -m rankframe`` is the command ``rankframe``."""

import sys

from rankframe._command.main import main

sys.exit(main())
