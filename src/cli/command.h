// The table of subcommands. A command is one file that defines one `add_*` function: it declares its options on the
// CLI11 app it is given and sets the callback that runs it.
#pragma once

#include <CLI/CLI.hpp>

namespace cosformer::cli {

struct Command {
  const char* name;
  const char* summary;
  void (*add)(CLI::App& app);
  bool computes = true;  // with torch's threads
};

void add_info(CLI::App& app);
void add_check(CLI::App& app);
void add_bench(CLI::App& app);
void add_data(CLI::App& app);
void add_train(CLI::App& app);
void add_compare(CLI::App& app);
void add_attention_map(CLI::App& app);
void add_eval(CLI::App& app);
void add_predict(CLI::App& app);
void add_generate(CLI::App& app);
void add_serve(CLI::App& app);
void add_bundle(CLI::App& app);

// Thrown by a command that did its work and found a failure to report: exit code 1 without a further message.
struct Unsuccessful {};

// Thrown by a command that was asked to stop (Ctrl-C) and has saved its work: exit code 130.
struct Interrupted {};

}  // namespace cosformer::cli
