#include "cli/command.h"
#include "image/image.h"

int main(int argc, char** argv) {
  hologram::image::register_decoder();
  return hologram::cli::run_program(
      argc, argv, "Hologram compiles tensor programs into .holo archives and runs them.",
      hologram::cli::add_all_commands);
}
