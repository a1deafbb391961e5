// Work in a process of its own: thread pools and peaks of memory belong to a process.
#pragma once

#include <nlohmann/json.hpp>

#include "support/function_ref.h"

namespace hologram::compare {

// Runs `body` in a child with `threads` threads (0: the default); its JSON comes back through a
// pipe. A child that dies gives {"error": ...}.
nlohmann::json in_child(int threads, FunctionRef<nlohmann::json()> body);

}  // namespace hologram::compare
