#include "cli/command.h"
#include "cli/kernels_compile.h"

int main(int argc, char** argv) {
  return hologram::cli::run_program(
      argc, argv, "Compiles kernels for Hologram.", [](hologram::cli::Commands& commands) {
        hologram::cli::add_kernels_compile(commands, "kernels", nullptr);
      });
}
