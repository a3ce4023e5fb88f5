// `cosformer predict`: labels with probabilities for the user's inputs, or answers to them.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/dataset_info.h"
#include "cli/numbers.h"
#include "cli/predict_seq2seq.h"
#include "cli/progress_line.h"
#include "cli/terminal_image.h"
#include "data/prediction_input.h"
#include "data/tokenized_text.h"
#include "train/batching.h"
#include "train/initial_weights.h"
#include "train/precision.h"

namespace cosformer::cli {
namespace {

struct Options {
  std::string run, input, format = "auto", output, device = "auto";
  long long top = 1, first = 0;
  bool skip_bad_rows = false, labelled = false, draw = false;
};

// Numbers of classes, the likeliest first.
std::vector<std::size_t> ranked(const std::vector<float>& probabilities) {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return probabilities[a] > probabilities[b]; });
  return order;
}

void print_tsv(const std::string& name, const std::vector<std::size_t>& order, const std::vector<float>& probabilities,
               const std::vector<std::string>& classes, std::size_t top) {
  std::printf("%s", name.c_str());
  for (std::size_t rank = 0; rank < top; ++rank) {
    std::printf("\t%s\t%.4f", classes[order[rank]].c_str(), static_cast<double>(probabilities[order[rank]]));
  }
  std::printf("\n");
}

// `expected`: the label that came along, or null.
void print_json(const std::string& name, const std::vector<std::size_t>& order, const std::vector<float>& probabilities,
                const std::vector<std::string>& classes, const std::string* expected) {
  nlohmann::ordered_json json{{"input", name},
                              {"label", classes[order.front()]},
                              {"probability", probabilities[order.front()]},
                              {"probabilities", nlohmann::ordered_json::object()}};
  if (expected != nullptr) json["expected"] = *expected;
  for (const std::size_t at : order) json["probabilities"][classes[at]] = probabilities[at];
  std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void run_predict(const Options& given) {
  Options o = given;
  train::RunConfig config = train::read_run(o.run);
  if (train::is_text_to_text(config)) {
    predict_seq2seq({o.run, o.input, o.format, o.output, o.device, o.first, o.skip_bad_rows});
    return;
  }
  if (o.output.empty()) o.output = "tsv";
  if (o.output == "text") throw UserError("--output text is of text-to-text runs; this one gives labels: tsv or jsonl");
  const std::shared_ptr<models::Classifier> model = train::load_trained(o.run);
  const models::InputConfig& trained = model->config().input;
  config.train.device = o.device;
  const data::TokenizerPointer tokenizer = train::tokenizer_of_classifier(o.run);
  data::DatasetInfo info = dataset_info_of(trained, config.data.task);
  if (tokenizer) {
    info.vocabulary = data::kByteVocabulary;
    info.max_length = 0;
    config.data = train::uncut(config.data);
  }
  data::PredictionInput input =
      data::read_prediction_input(o.input, config.data, info, {o.format, o.skip_bad_rows, o.labelled});
  if (!input.note.empty()) std::fprintf(stderr, "note: %s\n", input.note.c_str());
  if (tokenizer) input.dataset = data::tokenize_dataset(input.dataset, *tokenizer, trained.max_length);
  if (o.first > 0 && static_cast<std::size_t>(o.first) < input.dataset->size()) {
    input.dataset = data::slice(input.dataset, 0, static_cast<std::size_t>(o.first));
  }
  const at::Device device = train::device_of(config.train);
  model->to(device);
  const std::vector<std::vector<float>> all =
      train::predict(*model, input.dataset, train::evaluation_options(config.train, trained, device),
                     progress_line("predict", "examples", input.dataset->size()));
  std::size_t right = 0, labelled = 0;
  const std::size_t top = std::min(static_cast<std::size_t>(o.top), trained.classes.size());
  if (o.output == "tsv") {
    std::printf("input\tlabel\tprobability");
    for (std::size_t rank = 2; rank <= top; ++rank) std::printf("\tlabel_%zu\tprobability_%zu", rank, rank);
    std::printf("\n");
  }
  for (std::size_t at = 0; at < all.size(); ++at) {
    const std::vector<std::size_t> order = ranked(all[at]);
    if (o.draw && trained.image_width > 0) {
      std::printf("%s",
                  terminal_image(input.dataset->get(at).first, trained.image_width, trained.image_height).c_str());
    }
    const std::int32_t label = input.dataset->label(at);
    const std::string* expected = label == data::kNoLabel ? nullptr : &trained.classes[static_cast<std::size_t>(label)];
    if (o.output == "tsv") {
      print_tsv(input.names[at], order, all[at], trained.classes, top);
    } else {
      print_json(input.names[at], order, all[at], trained.classes, expected);
    }
    if (expected != nullptr) ++labelled;
    if (label == static_cast<std::int32_t>(order.front())) ++right;
  }
  if (input.report.rows_skipped > 0) {
    std::fprintf(stderr, "skipped %s bad row%s; the first: %s\n",
                 with_commas(static_cast<long long>(input.report.rows_skipped)).c_str(),
                 input.report.rows_skipped == 1 ? "" : "s",
                 input.report.first_reasons.empty() ? "" : input.report.first_reasons.front().c_str());
  }
  if (labelled > 0) {
    const std::size_t without = all.size() - labelled;
    std::fprintf(stderr, "%zu of %zu right%s\n", right, labelled,
                 without == 0 ? "" : (", " + std::to_string(without) + " without a label").c_str());
  }
}

}  // namespace

void add_predict(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  app.add_option("RUN", o->run, "folder of a run")->required();
  app.add_option("--input", o->input, "a file (or folder of images), or - for standard input")->required();
  app.add_option("--format", o->format, "of text: auto (by the name), lines, tsv, csv, jsonl")->capture_default_str();
  app.add_option("--output", o->output,
                 "tsv or jsonl; of text-to-text runs also text, one answer a line. By default tsv, and text of those")
      ->check(CLI::IsMember({"tsv", "jsonl", "text"}));
  app.add_option("--top", o->top, "how many labels of each input, in TSV")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  app.add_option("--first", o->first, "only so many inputs")->check(whole_number(1, 1000000000000));
  app.add_flag("--draw", o->draw, "images: draw them in the terminal");
  app.add_option("--device", o->device, "auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_flag("--skip-bad-rows", o->skip_bad_rows, "count them instead of stopping");
  app.add_flag("--labelled", o->labelled, "CSV of numbers: rows hold the label, in the training data's column");
  app.footer(
      "Reads what the run's task reads: texts one a line (or TSV, CSV, JSONL with the columns of the training data),\n"
      "ListOps expressions one a line, PNG files or folders, IDX files, CIFAR binaries, CSV rows. Labels that come\n"
      "along are compared. A text-to-text run answers each text with the likeliest tokens; in lines and TSV a newline "
      "of\n"
      "an answer is written \\n, a tab \\t, a backslash \\\\.\n\n"
      "examples:\n"
      "  echo '[MAX 2 9 [MIN 4 7 ] 0 ]' | cosformer predict runs/listops-cosformer-0 --input -\n"
      "  cosformer predict runs/mine --input new.tsv --output jsonl");
  app.callback([o] { run_predict(*o); });
}

}  // namespace cosformer::cli
