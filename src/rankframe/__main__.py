"""``python -m rankframe`` is the command ``rankframe``."""

import sys

from rankframe._cli import main

sys.exit(main())
