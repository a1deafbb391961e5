// Work in a process of its own: thread pools and peaks of memory belong to a process.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "support/function_ref.h"

namespace hologram::compare {

// Runs `body` in a child with `threads` threads (0: the default); its JSON comes back through a
// pipe. A child that dies gives {"error": ...}.
nlohmann::json in_child(int threads, FunctionRef<nlohmann::json()> body);

// The same of a program that is started with `argument` and prints its JSON.
nlohmann::json in_program(int threads, const std::filesystem::path& program,
                          const std::string& argument);

}  // namespace hologram::compare
