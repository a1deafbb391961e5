// The ops: whole-tensor work on an executor's backend, by precompiled programs and built-in
// kernels.
//
// Every op comes in two forms: into a given `out` (its type and shape are checked), and into a
// fresh tensor. Inputs may have any strides and broadcast by NumPy's rules; `out` may be or overlap
// an input. No op builds code. Results do not depend on the number of threads. See docs/runtime.md
// for the types each takes.
#pragma once

#include "runtime/ops/activation.h"
#include "runtime/ops/linalg.h"
#include "runtime/ops/loss.h"
#include "runtime/ops/math.h"
#include "runtime/ops/memory.h"
#include "runtime/ops/reduce.h"
