#include "cli/command.h"

namespace hologram::cli {

void add_all_commands(Commands& commands) {
  add_model_commands(commands);
  add_quantize(commands);
  add_inspect(commands);
  add_export(commands);
  add_kernels(commands);
  add_demo(commands);
  add_encode(commands);
  add_decode(commands);
  add_quality(commands);
  add_key(commands);
  add_trust(commands);
  add_config(commands);
}

}  // namespace hologram::cli
