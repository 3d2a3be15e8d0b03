# setup.py makes the module of gemma_like/inlay_c.h.
from typing import Any

ffi: Any
