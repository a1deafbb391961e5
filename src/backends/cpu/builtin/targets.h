// Which levels Highway compiles a kernel for: x86-64-v2, v3 and v4 as SSE4, AVX2 and AVX3, and the
// baseline. SSSE3 alone is not worth its build time.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_SSSE3
#endif
