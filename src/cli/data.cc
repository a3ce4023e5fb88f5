// `cosformer data`: makes the tasks that can be made, once; afterwards they are opened in place. Tokenizers and corpora
// are in data_text.cc.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/language/data_text.h"
#include "cli/terminal/numbers.h"
#include "cli/terminal/progress_line.h"
#include "data/readers/images/png_image.h"
#include "data/tasks/listops/listops_generator.h"
#include "data/tasks/listops/listops_tsv.h"
#include "data/tasks/pathfinder/pathfinder_generator.h"

namespace cosformer::cli {
namespace {

constexpr std::uint64_t kMostExamples = 100'000'000;  // of a part; a part is made in memory

struct Settings {
  std::string folder;
  data::ListOpsOptions listops;
  data::PathfinderOptions pathfinder;
  int size = 32;
  bool tsv = false;
  long long preview = 0;
};

// What somebody wants to know before training on it: sizes, lengths, and what always answering the same would score.
void print_summary(const std::string& folder, const data::Splits& splits) {
  Table table({"part", "examples", "shortest", "mean length", "longest", "classes", "largest class"});
  for (const auto& [name, part] : {std::pair{"train", splits.train}, {"valid", splits.valid}, {"test", splits.test}}) {
    std::vector<long long> counts(part->info().classes.size(), 0);
    double sum = 0;
    std::int64_t shortest = part->size() == 0 ? 0 : part->lengths(0).first, longest = 0;
    for (std::size_t at = 0; at < part->size(); ++at) {
      const std::int64_t length = part->lengths(at).first;
      sum += static_cast<double>(length);
      shortest = std::min(shortest, length);
      longest = std::max(longest, length);
      ++counts[static_cast<std::size_t>(part->label(at))];
    }
    const auto size = static_cast<double>(std::max<std::size_t>(part->size(), 1));
    const long long most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
    table.add({name, with_commas(static_cast<long long>(part->size())), std::to_string(shortest),
               significant(sum / size, 4), std::to_string(longest), std::to_string(counts.size()),
               significant(100 * static_cast<double>(most) / size) + "%"});
  }
  std::printf("%s\n%s", folder.c_str(), table.text().c_str());
}

void make_listops(const Settings& s) {
  const data::Splits splits =
      data::open_or_generate_listops(s.folder, s.listops, progress_line("listops", "expressions"));
  print_summary(s.folder, splits);
  if (!s.tsv) return;
  for (const auto& [name, part] : {std::pair{"train", splits.train}, {"valid", splits.valid}, {"test", splits.test}}) {
    const std::string path = (std::filesystem::path(s.folder) /
                              ("basic_" + std::string(std::string_view(name) == "valid" ? "val" : name) + ".tsv"))
                                 .string();
    data::write_listops_tsv(path, *part);
    std::printf("wrote %s\n", path.c_str());
  }
}

void make_pathfinder(const Settings& s) {
  data::PathfinderOptions options = data::published_pathfinder(s.size);
  options.seed = s.pathfinder.seed;
  options.train = s.pathfinder.train;
  options.valid = s.pathfinder.valid;
  options.test = s.pathfinder.test;
  options.threads = s.pathfinder.threads;
  const data::Splits splits =
      data::open_or_generate_pathfinder(s.folder, options, progress_line("pathfinder", "images"));
  print_summary(s.folder, splits);
  for (long long at = 0; at < std::min(s.preview, static_cast<long long>(splits.train->size())); ++at) {
    const data::Example example = splits.train->get(static_cast<std::size_t>(at));
    const auto* pixels = static_cast<const std::uint8_t*>(example.first.data);
    const std::string path = (std::filesystem::path(s.folder) /
                              ("train-" + std::to_string(at) + "-label-" + std::to_string(example.label) + ".png"))
                                 .string();
    data::write_png(path, {s.size, s.size, {pixels, pixels + example.first.size}});
    std::printf("wrote %s\n", path.c_str());
  }
}

// What both generators have, with `examples` for what they make.
template <class Options>
void add_generator_options(CLI::App& app, std::string& folder, Options& options, const std::string& examples) {
  app.add_option("--out", folder, "Writes the files to this folder.")->required();
  app.add_option("--seed", options.seed, "Which " + examples + " are made follows from this number.")
      ->check(seed_number())
      ->capture_default_str();
  const auto part = [&](const std::string& name, auto& count, const std::string& use) {
    app.add_option(name, count, "Makes this many " + use + ' ' + examples + '.')
        ->check(whole_number(0, kMostExamples))
        ->capture_default_str();
  };
  part("--train", options.train, "training");
  part("--valid", options.valid, "validation");
  part("--test", options.test, "test");
  app.add_option("--threads", options.threads,
                 "Uses this many CPU threads, which changes nothing of the result; 0: as many as there are cores.")
      ->check(thread_number())
      ->capture_default_str();
}

}  // namespace

void add_data(CLI::App& app) {
  app.require_subcommand(1);
  const auto s = std::make_shared<Settings>();
  CLI::App& listops = *app.add_subcommand("listops", "Makes the Long Range Arena's ListOps: nested list operations.");
  listops.footer(
      "Makes ListOps as the Long Range Arena defines it: trees of MIN, MAX, MED and SM over digits. The same seed\n"
      "gives the same bytes. Files that are there already are opened, not made again.");
  add_generator_options(listops, s->folder, s->listops, "expressions");
  listops.add_option("--longer-than", s->listops.longer_than, "Makes expressions of more symbols than this.")
      ->check(whole_number())
      ->capture_default_str();
  listops.add_option("--shorter-than", s->listops.shorter_than, "Makes expressions of fewer symbols than this.")
      ->check(whole_number())
      ->capture_default_str();
  listops.add_flag("--tsv", s->tsv, "Also writes the published form, basic_train.tsv and so on.");
  listops.callback([s] { make_listops(*s); });

  CLI::App& pathfinder =
      *app.add_subcommand("pathfinder", "Makes the Long Range Arena's Pathfinder: are two discs on one dashed path?");
  pathfinder.footer(
      "Makes Pathfinder images by the published procedure and settings, as sequences of gray pixels. The same seed\n"
      "gives the same images. Files that are there already are opened, not made again.");
  add_generator_options(pathfinder, s->folder, s->pathfinder, "images");
  pathfinder.add_option("--size", s->size, "Makes images of this many pixels a side: 32, 64, 128 (Path-X) or 256.")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  pathfinder.add_option("--preview", s->preview, "Also writes this many training images as PNG files, to look at.")
      ->check(whole_number());
  pathfinder.callback([s] { make_pathfinder(*s); });

  add_data_tokenizer(*app.add_subcommand("tokenizer", "Learns a vocabulary from texts."));
  add_data_corpus(*app.add_subcommand("corpus", "Tokenises texts for language models, and tells what they hold."));
}

}  // namespace cosformer::cli
