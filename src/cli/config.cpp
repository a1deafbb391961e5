#include "support/config.h"

#include "cli/command.h"

namespace hologram::cli {
namespace {

Status print_config() {
  HOLOGRAM_TRY(const Config config, load_config());
  fmt::print("{:<18} {:<16} {:<22} {}\n", "key", "value", "set by", "meaning");
  for (const ConfigKey& key : config_keys())
    fmt::print("{:<18} {:<16} {:<22} {}\n", key.name, value_text(config, key.name),
               config.origin.find(key.name)->second, key.meaning);
  return {};
}

}  // namespace

void add_config(Commands& commands) {
  commands.add("config", "Show the configuration and where each value comes from",
               "  hologram config\n  HOLOGRAM_NUM_THREADS=1 hologram config", print_config);
}

}  // namespace hologram::cli
