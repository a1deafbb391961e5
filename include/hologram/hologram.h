// Hologram's C++ interface: everything an application needs to run programs and ops.
//
//   auto executor = hologram::Executor::create();
//   if (!executor) return report(executor.error());
//   auto sum = hologram::ops::add(*executor, a, b);      // Result<Tensor>
//
// Nothing here throws; what can fail returns a hologram::Result, whose error says what was wrong,
// where, and what to do instead. Compiled models run by a Session: include hologram/session.h and
// link hologram::session as well. See docs/runtime.md.
#pragma once

#include "hologram/buffer.h"
#include "hologram/error.h"
#include "hologram/executor.h"
#include "hologram/ops.h"
#include "hologram/tensor.h"
