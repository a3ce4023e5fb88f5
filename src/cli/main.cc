// The program: finds the subcommand, runs it, and turns what went wrong into a message and an exit code.
// 0: done; 1: it failed; 2: it was asked the wrong thing; 130: it was interrupted and has saved its work.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/settings.h"
#include "cli/command.h"
#include "cli/memory/memory.h"
#include "cli/terminal/environment.h"
#include "cli/version.h"

namespace cosformer::cli {
namespace {

constexpr std::array kCommands{
    Command{"train", "Trains a model, or goes on with a run.", add_train},
    Command{"eval", "Tells how good a trained model is, beside what trivial rules reach.", add_eval},
    Command{"predict", "Tells what a trained model says about your inputs.", add_predict},
    Command{"compare", "Trains many models side by side, and makes a table and a report.", add_compare},
    Command{"attention-map", "Shows what a head looks at, as a picture and as numbers.", add_attention_map},
    Command{"generate", "Lets a trained language model continue a text.", add_generate},
    Command{"serve", "Puts trained models to work for many, over HTTP.", add_serve},
    Command{"bundle", "Writes a trained model as one file, for another machine.", add_bundle, false},
    Command{"info", "Tells what this build and this machine offer, or what a run is.", add_info, false},
    Command{"check", "Compares the operator with its definition on this machine.", add_check},
    Command{"bench", "Measures time, memory and error.", add_bench},
    Command{"data", "Makes tasks of the Long Range Arena, tokenizers and corpora.", add_data, false},
};

std::string command_list() {
  std::string text;
  for (const Command& command : kCommands) {
    text += fmt::format("  {}{}{}\n", std::string(command.name), std::string(15 - std::strlen(command.name), ' '),
                        command.summary);
  }
  return text;
}

std::string usage() {
  return fmt::format(
      "usage: cosformer COMMAND [OPTIONS]\n\ncommands:\n{}\nEach command explains itself: cosformer COMMAND --help\n",
      command_list());
}

const Command* find_command(const std::string& name) {
  const auto* const found =
      std::find_if(kCommands.begin(), kCommands.end(), [&](const Command& command) { return name == command.name; });
  return found == kCommands.end() ? nullptr : &*found;
}

bool computes(int argc, char** argv) {
  const Command* command = argc > 1 ? find_command(argv[1]) : nullptr;
  return command != nullptr && command->computes && std::none_of(argv + 2, argv + argc, [](const char* argument) {
           return std::string_view(argument) == "--help" || std::string_view(argument) == "-h";
         });
}

// Some libtorch packages start with one thread; people expect all cores unless they say otherwise.
void use_all_cores() {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return;
  at::set_num_threads(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
}

// What was wrong with the arguments of a command; of an option that does not exist, which one was meant.
std::string misuse(const CLI::ParseError& error, const CLI::App& command) {
  const std::vector<std::string> left = command.remaining();
  const bool lacks_subcommand = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !left.empty();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr && !lacks_subcommand) return error.what();
  const auto option =
      std::find_if(left.begin(), left.end(), [](const std::string& text) { return text.starts_with("-"); });
  if (option == left.end()) {
    if (!lacks_subcommand) return left.empty() ? error.what() : fmt::format("'{}' was not expected", left.front());
    std::string known;
    for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) {
      known += (known.empty() ? "" : ", ") + sub->get_name();
    }
    return fmt::format("'{}' is none of {}", left.front(), known);
  }
  std::vector<std::string> names;
  for (const CLI::Option* known : command.get_options()) {
    for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
  }
  const std::string near = nearest_name(option->substr(0, option->find('=')), names);
  return fmt::format("there is no option '{}'{}", *option, near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

// Lines of at most `width` bytes, broken at spaces.
std::string wrapped(const std::string& text, std::size_t width) {
  std::string result;
  std::size_t begin = 0;
  while (text.size() - begin > width) {
    std::size_t end = text.rfind(' ', begin + width);
    if (end == std::string::npos || end <= begin) end = text.find(' ', begin + width);
    if (end == std::string::npos) break;
    result += text.substr(begin, end - begin) + '\n';
    begin = end + 1;
  }
  return result + text.substr(begin);
}

// Options are described in sentences, which CLI11 would put on one line each.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description(), 88);
  }
};

int parse_and_run(int argc, char** argv) {
  CLI::App app("Attention whose cost grows linearly with length, exactly.", "cosformer");
  app.formatter(std::make_shared<HelpFormatter>());  // of the subcommands too
  app.set_version_flag("--version", std::string("cosformer ") + kVersion);
  app.require_subcommand(1);
  for (const Command& command : kCommands) command.add(*app.add_subcommand(command.name, command.summary));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    if (app.get_subcommands().empty()) {
      std::fprintf(stderr, "cosformer: %s\n\n%s", misuse(error, app).c_str(), usage().c_str());
      return 2;
    }
    const CLI::App* command = &app;
    std::string name = "cosformer";
    while (!command->get_subcommands().empty()) {
      command = command->get_subcommands().front();
      name += " " + command->get_name();
    }
    std::fprintf(stderr, "cosformer: %s\n%s --help shows the options\n", misuse(error, *command).c_str(), name.c_str());
    return 2;
  }
  return 0;
}

int report(const char* message, int code) {
  std::fprintf(stderr, "cosformer: %s\n", message);
  return code;
}

int run(int argc, char** argv) {
  if (argc < 2) {
    std::fputs(usage().c_str(), stderr);
    return 2;
  }
  if (argv[1][0] != '-' && find_command(argv[1]) == nullptr) {
    std::vector<std::string> names;
    for (const Command& command : kCommands) names.emplace_back(command.name);
    const std::string near = nearest_name(argv[1], names);
    std::fprintf(stderr, "cosformer: unknown command '%s'%s\n\n%s", argv[1],
                 near.empty() ? "" : (fmt::format("; did you mean {}?", near)).c_str(), usage().c_str());
    return 2;
  }
  try {
    set_up_memory();
    use_all_cores();
    return parse_and_run(argc, argv);
  } catch (const Unsuccessful&) {
    return 1;
  } catch (const Interrupted&) {
    return 130;
  } catch (const UserError& error) {
    return report(error.what(), 2);
  } catch (const c10::ValueError& error) {
    return report(error.what_without_backtrace(), 2);
  } catch (const c10::Error& error) {
    return report(error.what_without_backtrace(), 1);
  } catch (const std::bad_alloc&) {
    return report("there is not enough memory for this; ask for less (fewer, shorter or smaller), or give more", 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}

}  // namespace
}  // namespace cosformer::cli

int main(int argc, char** argv) {
  cosformer::cli::restart_with_fitting_environment(argv, cosformer::cli::computes(argc, argv));
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // lines appear when they are written, also in a pipe
  const int code = cosformer::cli::run(argc, argv);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "cosformer: cannot write to standard output\n");
    return code == 0 ? 1 : code;
  }
  return code;
}
