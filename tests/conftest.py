"""Property tests try new examples on every run at a desk, and the same ones in CI: a red run means the change."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, print_blob=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
