// `cosformer bundle`: the one file that another machine needs of a run.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/runs/run_kinds.h"
#include "runs/result_file.h"
#include "runs/run_bundle.h"
#include "runs/run_folder.h"
#include "runs/run_tokenizer.h"

namespace cosformer::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string run, out;
};

std::optional<std::string> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void run_bundle(const Options& o) {
  if (runs::is_file(o.run)) throw UserError(fmt::format("'{}' is a file; a bundle is made of a run's folder", o.run));
  const runs::RunConfig config = runs::read_run(o.run);
  const std::string weights = runs::trained_weights_path(o.run);
  const std::string name = fs::absolute(fs::path(o.run) / "").lexically_normal().parent_path().filename().string();
  const std::string out = o.out.empty() ? name + ".safetensors" : o.out;
  runs::BundleContent content{runs::to_toml(config), content_of(runs::tokenizer_path(o.run)),
                              content_of(runs::result_path(o.run))};
  if (!content.result) std::printf("note: the run has not ended; these are its best weights so far\n");
  runs::write_bundle(out, weights, content);
  const std::string use = kind_of_run(config).use(out, config);
  std::printf("wrote %s (%s): weights, settings, %s\nnext: cosformer %s\n", out.c_str(),
              human_bytes(static_cast<double>(fs::file_size(out))).c_str(),
              content.tokenizer ? "the tokenizer, a checksum" : "a checksum", use.c_str());
}

}  // namespace

void add_bundle(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  app.add_option("RUN", o->run, "The folder of a run.")->required();
  app.add_option("--out", o->out, "Writes this file; by default RUN's name with .safetensors, in the current folder.");
  app.footer(
      "Writes the run's best weights with its settings, its tokenizer and its result as one safetensors file, with a\n"
      "checksum that is looked at whenever it is read. eval, predict, generate, info and attention-map take it where\n"
      "a run's folder goes, and so does train.init. The data do not go with it: eval needs --data.");
  app.callback([o] { run_bundle(*o); });
}

}  // namespace cosformer::cli
