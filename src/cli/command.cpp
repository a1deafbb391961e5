#include "cli/command.h"

#include <cstdio>
#include <exception>
#include <filesystem>

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
    return fmt::format("error: {}\nTry '{} --help'.\n", error.what(), failed->get_name());
  });
  Commands commands(app);
  add_commands(commands);
  try {
    if (Result<Config> config = load_config(); !config) {
      fmt::print(stderr, "error: {}\n", config.error().to_string());
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
