// `hologram kernels`: compile, run, list.
#pragma once

#include "cli/command.h"

namespace hologram::cli {

void add_kernels_run(Commands& commands, CLI::App* parent);
void add_kernels_list(Commands& commands, CLI::App* parent);

}  // namespace hologram::cli
