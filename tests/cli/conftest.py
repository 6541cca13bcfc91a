"""Lets the tests here share cli_support.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
