"""python -m fginfer."""

import sys

from fginfer.cli import main

sys.exit(main())
