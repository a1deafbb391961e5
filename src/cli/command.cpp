#include "cli/command.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <numeric>
#include <vector>

#include "support/config.h"

namespace hologram::cli {

CLI::App* Commands::add(std::string name, std::string description, std::string examples,
                        std::function<Status()> run, CLI::App* parent) {
  CLI::App* command =
      (parent ? *parent : app_).add_subcommand(std::move(name), std::move(description));
  if (!examples.empty()) command->footer("Examples:\n" + examples);
  command->callback([this, run = std::move(run)] { status_ = run(); });
  return command;
}

CLI::App* Commands::group(std::string name, std::string description) {
  CLI::App* command = app_.add_subcommand(std::move(name), std::move(description));
  command->require_subcommand(1);
  return command;
}

namespace {

// How many letters to change, add or drop to get from one word to the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t corner = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = corner + (a[i] != b[j]);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

// CLI11 says of an unknown command only that one is required.
std::string unknown_command(const CLI::App& app, std::string_view word) {
  std::string best;
  size_t least = 3;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == word) return "";
    const size_t d = distance(word, command->get_name());
    if (d < least) {
      least = d;
      best = command->get_name();
    }
  }
  return fmt::format("no command '{}'{}", word,
                     best.empty() ? "" : fmt::format("; did you mean '{}'?", best));
}

}  // namespace

int exit_code(const Status& status) {
  if (status) return 0;
  return is_user_error(status.error().code()) ? 2 : 1;
}

int run_program(int argc, char** argv, const std::string& description,
                const std::function<void(Commands&)>& add_commands) {
  CLI::App app(description);
  app.name(std::filesystem::path(argv[0]).filename().string());
  app.set_version_flag("--version", std::string("hologram ") + HOLOGRAM_VERSION);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    std::string name = failed->get_name();
    for (auto used = failed->get_subcommands(); !used.empty(); used = used[0]->get_subcommands())
      name += " " + used[0]->get_name();
    return fmt::format("error: {}\nTry '{} --help'.\n", error.what(), name);
  });
  Commands commands(app);
  add_commands(commands);
  try {
    if (Result<Config> config = load_config(); !config) {
      fmt::print(stderr, "error: {}\n", config.error().to_string());
      return 2;
    }
    if (argc == 1) {
      fmt::print(stderr, "{}", app.help());
      return 2;
    }
    if (argv[1][0] != '-')
      if (const std::string unknown = unknown_command(app, argv[1]); !unknown.empty()) {
        fmt::print(stderr, "error: {}\nTry '{} --help'.\n", unknown, app.get_name());
        return 2;
      }
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "internal error: {}\n", error.what());
    return 1;
  }
  if (!commands.status()) fmt::print(stderr, "error: {}\n", commands.status().error().to_string());
  return exit_code(commands.status());
}

}  // namespace hologram::cli
