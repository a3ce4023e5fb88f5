#include "cli/runs/predict_classifier.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/share.h"
#include "cli/dataset_info.h"
#include "cli/runs/answered_inputs.h"
#include "cli/terminal/one_line.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/terminal_image.h"
#include "data/tasks/listops/listops.h"
#include "train/jobs/trained_classifier.h"

namespace cosformer::cli {
namespace {

// Numbers of classes, the likeliest first.
std::vector<std::size_t> ranked(const std::vector<float>& probabilities) {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return probabilities[a] > probabilities[b]; });
  return order;
}

std::string text_of(const data::SequenceView& sequence, bool is_listops) {
  const auto* bytes = static_cast<const std::uint8_t*>(sequence.data);
  if (is_listops) return data::listops::to_text({bytes, sequence.size});
  return {bytes, bytes + sequence.size};
}

class Printer {
 public:
  Printer(const PredictOptions& o, const train::TrainedClassifier& model)
      : o_(o),
        classes_(model.input().classes),
        top_(std::min(static_cast<std::size_t>(o.top), classes_.size())),
        pairs_(model.input().pairs),
        listops_(model.config().data.task == "listops") {}

  const std::vector<std::string>& classes() const { return classes_; }

  void header() const {
    if (o_.output != "tsv") return;
    std::printf("input\tlabel\tprobability");
    for (std::size_t rank = 2; rank <= top_; ++rank) std::printf("\tlabel_%zu\tprobability_%zu", rank, rank);
    std::printf("%s\n", !o_.echo ? "" : pairs_ ? "\ttext\tsecond_text" : "\ttext");
  }

  // A line of the input that asks nothing has its line in the output.
  void gap(const std::string& name) const {
    if (o_.output == "tsv") {
      std::printf("%s%s%s\n", name.c_str(), std::string(2 * top_, '\t').c_str(),
                  !o_.echo ? ""
                  : pairs_ ? "\t\t"
                           : "\t");
      return;
    }
    nlohmann::ordered_json json{{"input", name}, {"label", nullptr}};
    if (o_.echo) json["text"] = "";
    std::printf("%s\n", json.dump().c_str());
  }

  // `example` as it was read; `most`: what the model read of it, where that is not all; `expected`: the label that came
  // along, or null.
  void answer(const std::string& name, const data::Example& example, std::optional<std::int64_t> most,
              const std::vector<float>& probabilities, const std::string* expected) const {
    const std::vector<std::size_t> order = ranked(probabilities);
    if (o_.output == "tsv") {
      print_tsv(name, example, order, probabilities);
    } else {
      print_json(name, example, most, order, probabilities, expected);
    }
  }

 private:
  void print_tsv(const std::string& name, const data::Example& example, const std::vector<std::size_t>& order,
                 const std::vector<float>& probabilities) const {
    std::printf("%s", name.c_str());
    for (std::size_t rank = 0; rank < top_; ++rank) {
      std::printf("\t%s\t%.4f", classes_[order[rank]].c_str(), static_cast<double>(probabilities[order[rank]]));
    }
    if (o_.echo) std::printf("\t%s", on_one_line(text_of(example.first, listops_)).c_str());
    if (o_.echo && pairs_) std::printf("\t%s", on_one_line(text_of(example.second, false)).c_str());
    std::printf("\n");
  }

  void print_json(const std::string& name, const data::Example& example, std::optional<std::int64_t> most,
                  const std::vector<std::size_t>& order, const std::vector<float>& probabilities,
                  const std::string* expected) const {
    nlohmann::ordered_json json{{"input", name},
                                {"label", classes_[order.front()]},
                                {"probability", probabilities[order.front()]},
                                {"probabilities", nlohmann::ordered_json::object()}};
    if (expected != nullptr) json["expected"] = *expected;
    if (most) json["cut_at"] = *most;
    if (o_.echo) json["text"] = text_of(example.first, listops_);
    if (o_.echo && pairs_) json["second_text"] = text_of(example.second, false);
    for (const std::size_t at : order) json["probabilities"][classes_[at]] = probabilities[at];
    std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }

  const PredictOptions& o_;
  std::vector<std::string> classes_;
  std::size_t top_;
  bool pairs_, listops_;
};

struct Counts {
  std::size_t inputs = 0, labelled = 0, right = 0, cut = 0, beyond = 0;
};

void answer(const data::PredictionInput& input, const PredictOptions& o, train::TrainedClassifier& model,
            const Printer& printer, const std::function<void(std::size_t)>& progress, Counts& counts) {
  std::vector<std::vector<float>> all;
  std::vector<bool> is_cut;
  if (input.dataset) {
    const train::ReadData read = model.read(input.dataset);
    all = model.predict(read.dataset, progress);
    counts.cut += read.cut;
    counts.beyond += read.beyond;
    is_cut = read.is_cut;
  }
  AnsweredInputs::in_order(
      input,
      [&](std::size_t at) {
        const data::Example example = input.dataset->get(at);
        if (o.draw) {
          std::printf("%s",
                      terminal_image(example.first, model.input().image_width, model.input().image_height).c_str());
        }
        const bool has_label = example.label != data::kNoLabel;
        printer.answer(input.names[at], example, is_cut[at] ? model.most() : std::nullopt, all[at],
                       has_label ? &printer.classes()[static_cast<std::size_t>(example.label)] : nullptr);
        ++counts.inputs;
        counts.labelled += has_label ? 1 : 0;
        counts.right += example.label == static_cast<std::int32_t>(ranked(all[at]).front()) ? 1 : 0;
      },
      [&](const std::string& name) { printer.gap(name); });
}

void report(const PredictOptions& o, const train::TrainedClassifier& model, const Counts& counts) {
  std::fprintf(stderr, "%s", model.about_lengths(counts.cut, counts.beyond).c_str());
  if (counts.labelled == 0) return;
  const double labelled = static_cast<double>(counts.labelled), share = static_cast<double>(counts.right) / labelled;
  const std::size_t without = counts.inputs - counts.labelled;
  std::fprintf(stderr, "%zu of %zu right (%s)%s\n", counts.right, counts.labelled,
               percent(share, standard_error(share, labelled)).c_str(),
               without == 0 ? "" : (fmt::format(", {} without a label", without)).c_str());
  std::error_code unknown;
  if (std::filesystem::equivalent(o.input, model.config().data.path, unknown)) {
    std::fprintf(stderr,
                 "note: this is the file that the model was trained on, so that most of these were in its training; "
                 "cosformer eval %s tells how it does on what was held out\n",
                 o.run.c_str());
  }
}

}  // namespace

void predict_classifier(const PredictOptions& given) {
  PredictOptions o = given;
  if (o.output.empty()) o.output = "tsv";
  if (o.output == "text") throw UserError("--output text is of text-to-text runs; this one gives labels: tsv or jsonl");
  train::TrainedClassifier model(o.run, o.device);
  data::DatasetInfo info = dataset_info_of(model.input(), model.config().data.task);
  if (model.has_tokenizer()) {
    info.vocabulary = data::kByteVocabulary;
    info.max_length = 0;
  }
  const data::DataConfig reading = model.reading();
  AnsweredInputs inputs(o, reading, info);
  // Of inputs that come one by one nobody knows how many there will be.
  const std::function<void(std::size_t)> progress =
      inputs.size() ? progress_line("predict", "examples", *inputs.size()) : std::function<void(std::size_t)>();
  const Printer printer(o, model);
  Counts counts;
  bool begun = false;
  while (const std::optional<data::PredictionInput> input = inputs.next()) {
    if (!begun) printer.header();
    begun = true;
    answer(*input, o, model, printer, progress, counts);
  }
  inputs.report();
  report(o, model, counts);
}

}  // namespace cosformer::cli
