#include "cli/command.h"

int main(int argc, char** argv) {
  return hologram::cli::run_program(
      argc, argv, "Hologram compiles tensor programs into .holo archives and runs them.",
      hologram::cli::add_all_commands);
}
