"""The C core as cffi makes it: names of csrc/include, without types."""

from typing import Any

ffi: Any
lib: Any
