// cli: the `hologram` command. One subcommand, one file with one function `add_NAME`; the list of
// them is in commands.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "support/result.h"

namespace hologram::cli {

// What every subcommand gets to register itself.
class Commands {
 public:
  explicit Commands(CLI::App& app) : app_(app) {}

  // A subcommand under `parent` (the program itself where null). `run` is called after parsing;
  // an error it returns is printed and becomes the exit code. `examples` are shown by --help.
  CLI::App* add(std::string name, std::string description, std::string examples,
                std::function<Status()> run, CLI::App* parent = nullptr);
  // A subcommand that only holds others, such as `hologram kernels`.
  CLI::App* group(std::string name, std::string description);

  const Status& status() const { return status_; }

 private:
  CLI::App& app_;
  Status status_;
};

// Exit codes: 0 done; 1 a defect of Hologram; 2 something the user can mend.
int exit_code(const Status& status);

// Parses and runs; the program's own name is what the user called it.
int run_program(int argc, char** argv, const std::string& description,
                const std::function<void(Commands&)>& add_commands);

// Every subcommand of `hologram`.
void add_all_commands(Commands& commands);

void add_config(Commands& commands);
void add_decode(Commands& commands);
void add_encode(Commands& commands);
void add_quality(Commands& commands);
void add_inspect(Commands& commands);
void add_export(Commands& commands);
void add_demo(Commands& commands);
void add_kernels(Commands& commands);
void add_key(Commands& commands);
void add_model_commands(Commands& commands);
void add_quantize(Commands& commands);
void add_trust(Commands& commands);

}  // namespace hologram::cli
