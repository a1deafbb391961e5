// `hologram kernels compile` and `hologram-compile kernels`: one command, two names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.h"
#include "lang/compile.h"
#include "support/result.h"

namespace hologram::cli {

// Adds the command and its options under `parent` (the program itself where null).
void add_kernels_compile(Commands& commands, const std::string& name, CLI::App* parent);

// The kernel sources among files and folders (.py, and .json files that hold the IR), sorted.
// not_found for a path that is not there, invalid_argument when there is no source at all.
Result<std::vector<std::filesystem::path>> find_kernel_sources(
    const std::vector<std::string>& paths);
// Every kernel of one source.
Result<std::vector<lang::CompiledKernel>> compile_kernel_file(const std::filesystem::path& file);

}  // namespace hologram::cli
