"""``python -m rankframe`` is the command ``rankframe``."""

import sys

from rankframe.cli import main

sys.exit(main())
