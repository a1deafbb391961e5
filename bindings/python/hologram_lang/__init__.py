"""hologram_lang: kernels of the Hologram language as ordinary Python.

A kernel file begins with `from hologram_lang import *`. That makes it a valid Python module whose
kernels run under CPython on NumPy arrays, thread by thread, with the same results as the compiled
ones: fixed-width integers wrap around, f16, bf16 and f32 round after every operation, barriers and
group reductions keep the threads of a block together.

    import numpy as np
    from hologram_lang import load

    kernels = load("kernels/stdlib/vector/vector_add.py")
    c = np.zeros(3, np.float32)
    kernels.run("vector_add", a=np.ones(3, np.float32), b=np.ones(3, np.float32), c=c, n=3)

It is for learning, debugging and testing: it is slow, and shows a mistake as a Python exception.
"""

from .functions import *  # noqa: F401,F403
from .functions import __all__ as _functions
from .runner import Kernels, load
from .scalars import (bf16, bool_ as bool, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64)

int = i32
float = f32

__all__ = _functions + ["load", "Kernels", "bool", "int", "float", "bf16", "f16", "f32", "f64",
                        "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
