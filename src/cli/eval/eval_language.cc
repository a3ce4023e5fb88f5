#include "cli/eval/eval_language.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/table.h"
#include "cli/bench/context_plot.h"
#include "cli/eval/run_report.h"
#include "cli/terminal/progress_line.h"
#include "data/baselines/lm_floor.h"
#include "data/dataset/fingerprint.h"
#include "runs/device.h"
#include "runs/run_bundle.h"
#include "runs/run_tokenizer.h"
#include "runs/trained_data.h"
#include "runs/trained_models.h"
#include "train/jobs/language_job.h"

namespace cosformer::cli {
namespace {

using nlohmann::ordered_json;

struct Evaluated {
  std::string folder, label, how;
  train::LanguageEvaluation evaluation;
};

// What is asked, and what --data turned out to be.
struct Request : EvalOptions {
  bool own = false;  // a text of the user's own, all of which is read

  std::string what() const { return own ? fmt::format("all of '{}'", data_path) : part + " part"; }
};

// The text of the first run's settings, in the tokens of `folder`, whose tokenizer must be the one of the hash.
data::Corpus corpus_for(const Request& o, const std::string& folder, const std::string& hash) {
  runs::RunConfig config = runs::read_run(o.runs.front());
  if (o.data_path.empty()) {
    runs::require_data_there(o.runs.front(), config);
  } else {
    config.data.path = o.data_path;
  }
  if (o.own) {
    config.data.valid_path.clear();
    config.data.test_path.clear();
    config.data.valid_fraction = config.data.test_fraction = 0;
  }
  return train::open_language_data(config, runs::tokenizer_of_run(folder, hash),
                                   [](const std::string& what) { return progress_line(what, "B"); })
      .corpus;
}

const data::CorpusPart& part_of(const data::Corpus& corpus, const Request& o) {
  const data::CorpusPart& part = o.own || o.part == "train" ? corpus.train
                                 : o.part == "test"         ? corpus.test
                                                            : corpus.valid;
  if (part.tokens() == 0) throw UserError(fmt::format("there is no {} part; try --part valid", o.part));
  return part;
}

runs::SameData is_text_of(const Request& o, const std::string& folder) {
  const std::string tokenizer = runs::load_trained_language_model(folder)->config().tokenizer;
  return runs::is_trained_on(folder, data::fingerprint(corpus_for(o, folder, tokenizer)));
}

// Decides what --data is. Throws UserError where the text of the training has changed and none was named.
Request checked(const EvalOptions& asked) {
  Request o{asked};
  const std::string& folder = o.runs.front();
  if (o.data_path.empty()) {
    if (is_text_of(o, folder) != runs::SameData::kNo) return o;
    throw UserError(
        fmt::format("the data are not those that '{}' was trained on: '{}' has changed since, and with it what is held "
                    "out of it, so that text of the training would be tested. Put back what was there, or evaluate a "
                    "text that it has not seen: cosformer eval {} --data FILE",
                    folder, runs::read_run(folder).data.path, folder));
  }
  try {
    if (is_text_of(o, folder) == runs::SameData::kYes) return o;  // it has moved
  } catch (const UserError&) {  // too short to hold a part out, which is not asked of it
  }
  if (o.part_given) {
    throw UserError(
        fmt::format("'{}' does not hold the text that '{}' was trained on, and so has no parts: leave --part out to "
                    "evaluate all of it",
                    o.data_path, folder));
  }
  o.own = true;
  return o;
}

// Of runs after the first: they are judged by its text, which may be another one than theirs.
void note_other_text(const Request& o, const std::string& folder) {
  if (o.own || folder == o.runs.front() || is_text_of(o, folder) == runs::SameData::kYes) return;
  std::fprintf(stderr,
               "note: '%s' was trained on another text, or other parts of it; it may have seen what is tested\n",
               folder.c_str());
}

train::LanguageEvaluationOptions options_for(const EvalOptions& o, const runs::RunConfig& config,
                                             const models::LanguageModel& model, const data::CorpusPart& part) {
  train::LanguageEvaluationOptions options =
      train::language_evaluation_options(config, model, runs::device_of(config.train));
  if (o.batch_size > 0) options.rows = o.batch_size;
  if (o.carry > 0) options.carry = o.carry;
  if (o.context > 0 && options.carry > options.window) {
    throw UserError(
        fmt::format("--context is for models that carry no state; this one carries it over {} tokens", options.carry));
  }
  if (o.context >= options.window) {
    throw UserError(fmt::format("--context must be below the window of {} tokens", options.window));
  }
  options.context = o.context;
  options.progress = progress_line("eval", "tokens", static_cast<std::size_t>(part.tokens()));
  return options;
}

std::string how_it_read(const train::LanguageEvaluation& e, const train::LanguageEvaluationOptions& o) {
  if (e.carried) return fmt::format("state carried over up to {} tokens", with_commas(o.carry));
  return fmt::format("windows of {} tokens, no state carried{}{}", with_commas(o.window),
                     o.context > 0 ? fmt::format(", {} of them only read", with_commas(o.context)) : "",
                     o.documents_apart ? ", documents apart" : "");
}

Evaluated evaluate_run(const Request& o, const std::string& folder) {
  runs::RunConfig config = runs::read_run(folder);
  if (config.data.task != "lm")
    throw UserError(fmt::format("'{}' is no autoregressive model; compare runs of one kind", folder));
  config.train.device = o.device;
  const auto model = runs::load_trained_language_model(folder);
  model->to(runs::device_of(config.train));
  note_other_text(o, folder);
  const data::Corpus corpus = corpus_for(o, folder, model->config().tokenizer);
  const data::CorpusPart& part = part_of(corpus, o);
  const train::LanguageEvaluationOptions options = options_for(o, config, *model, part);
  Evaluated run{folder, models::label_of(model->config().model), "", {}};
  run.evaluation = train::evaluate_language(*model, part, corpus.tokenizer, options);
  run.how = how_it_read(run.evaluation, options);
  return run;
}

// What counting on the text of the training reaches, in the same terms; nothing where that is not there as it was.
std::vector<Evaluated> floors_of(const Request& o) {
  const std::string& first = o.runs.front();
  const data::Corpus corpus = corpus_for(o, first, "");
  std::optional<data::Corpus> there;
  if (o.own) {
    Request original = o;
    original.own = false;
    original.data_path.clear();
    try {
      there = corpus_for(original, first, "");
    } catch (const UserError&) {
      return {};
    }
    if (runs::is_trained_on(first, data::fingerprint(*there)) != runs::SameData::kYes) return {};
  }
  const data::CorpusPart& part = part_of(corpus, o);
  std::vector<Evaluated> floors;
  for (const data::LmFloor& floor : data::lm_floors((there ? *there : corpus).train, part, *corpus.tokenizer)) {
    Evaluated row{"", "floor: " + floor.rule, "", {}};
    row.evaluation.nats = floor.nats;
    row.evaluation.counts = part.counts();
    floors.push_back(row);
  }
  return floors;
}

void print_tables(const Request& o, const std::vector<Evaluated>& floors, const std::vector<Evaluated>& runs) {
  const data::TextCounts& counts = runs.front().evaluation.counts;
  const auto number = [](std::uint64_t value) { return with_commas(static_cast<long long>(value)); };
  std::printf("%s: %s tokens, %s words and line ends, %s bytes\n\n", o.what().c_str(), number(counts.tokens).c_str(),
              number(counts.words_and_lines()).c_str(), number(counts.bytes).c_str());
  Table table({"", "loss", "perplexity", "per word", "bits per byte", "tokens/s"});
  const auto add = [&](const Evaluated& run) {
    const train::LanguageEvaluation& e = run.evaluation;
    table.add({run.label, significant(e.loss(), 5), significant(e.perplexity(), 5), significant(e.word_perplexity(), 5),
               significant(e.bits_per_byte(), 5),
               e.seconds > 0 ? with_commas(std::llround(static_cast<double>(e.counts.tokens) / e.seconds)) : ""});
  };
  for (const Evaluated& floor : floors) add(floor);
  for (const Evaluated& run : runs) add(run);
  std::printf("%s", table.text().c_str());
  for (const Evaluated& run : runs) {
    std::printf("%s: %s\n", run.folder.c_str(), run.how.c_str());
    if (run.evaluation.counts.bytes == counts.bytes) continue;
    std::printf(
        "note: %s was judged by another text, of %s bytes: parts are held out by tokens, and its tokenizer is\n"
        "another one. Give the parts as files (data.test_path) to compare\n",
        run.folder.c_str(), number(run.evaluation.counts.bytes).c_str());
  }
}

void print_advice(const std::vector<Evaluated>& floors, const std::vector<Evaluated>& runs) {
  const auto best = std::min_element(floors.begin(), floors.end(), [](const Evaluated& a, const Evaluated& b) {
    return a.evaluation.bits_per_byte() < b.evaluation.bits_per_byte();
  });
  for (const Evaluated& run : runs) {
    if (best == floors.end() || run.evaluation.bits_per_byte() < best->evaluation.bits_per_byte()) continue;
    TrainingSeen seen = training_seen(run.folder);
    seen.lr = runs::read_run(run.folder).train.lr;
    const auto bits = [](const Evaluated& one) {
      return significant(one.evaluation.bits_per_byte(), 4) + " bits per byte";
    };
    std::printf("\n%s: %s", run.folder.c_str(),
                floor_advice(bits(run), best->label.substr(7), bits(*best), seen).c_str());
  }
}

void print_contexts(const std::vector<Evaluated>& floors, const std::vector<Evaluated>& runs) {
  for (const Evaluated& run : runs) {
    Table table({"tokens before", "tokens", "loss", "perplexity"});
    for (const train::ContextRange& range : run.evaluation.by_context) {
      const double loss = range.nats / static_cast<double>(range.tokens);
      table.add({range.first == range.last ? with_commas(range.first)
                                           : with_commas(range.first) + "-" + with_commas(range.last),
                 with_commas(static_cast<long long>(range.tokens)), significant(loss, 5),
                 significant(std::exp(loss), 5)});
    }
    std::printf("\n%s by what was read before:\n%s", run.label.c_str(), table.text().c_str());
    if (runs::is_file(run.folder)) continue;  // a bundle has no folder for a plot
    std::vector<PlotFloor> lines;
    for (const Evaluated& floor : floors) {
      // Of another tokenizer's tokens a loss says nothing here.
      if (floor.evaluation.counts == run.evaluation.counts) {
        lines.push_back({floor.label.substr(7), floor.evaluation.loss()});
      }
    }
    std::printf("%s\n", draw_contexts(run.folder, run.label, run.evaluation.by_context, lines).c_str());
  }
}

void print_json(const Request& o, const std::vector<Evaluated>& floors, const std::vector<Evaluated>& runs) {
  const auto numbers = [](const train::LanguageEvaluation& e) {
    ordered_json json;
    for (const auto& [name, value] : train::part_result(e).metrics) json[name] = value;
    return json;
  };
  const data::TextCounts& counts = runs.front().evaluation.counts;
  ordered_json json{{"part", o.own ? ordered_json() : ordered_json(o.part)},
                    {"tokens", counts.tokens},
                    {"words_and_lines", counts.words_and_lines()},
                    {"bytes", counts.bytes},
                    {"floors", ordered_json::object()},
                    {"runs", ordered_json::array()}};
  if (o.own) json["data"] = o.data_path;
  for (const Evaluated& floor : floors) json["floors"][floor.label.substr(7)] = numbers(floor.evaluation);
  for (const Evaluated& run : runs) {
    ordered_json entry{
        {"run", run.folder}, {"attention", run.label}, {"carried", run.evaluation.carried}, {"reading", run.how}};
    entry.update(numbers(run.evaluation));
    entry["tokens_per_second"] = static_cast<double>(run.evaluation.counts.tokens) / run.evaluation.seconds;
    for (const train::ContextRange& range : run.evaluation.by_context) {
      entry["by_context"].push_back({{"first", range.first},
                                     {"last", range.last},
                                     {"tokens", range.tokens},
                                     {"loss", range.nats / static_cast<double>(range.tokens)}});
    }
    json["runs"].push_back(entry);
  }
  std::printf("%s\n", json.dump(1).c_str());
}

void eval_masked(const Request& o) {
  Table table({"", "loss", "masked tokens found", "masked tokens"});
  ordered_json json{{"part", o.own ? ordered_json() : ordered_json(o.part)}, {"runs", ordered_json::array()}};
  for (const std::string& folder : o.runs) {
    runs::RunConfig config = runs::read_run(folder);
    if (config.data.task != "mlm")
      throw UserError(fmt::format("'{}' is no masked model; compare runs of one kind", folder));
    config.train.device = o.device;
    const auto model = runs::load_trained_language_model(folder);
    model->to(runs::device_of(config.train));
    note_other_text(o, folder);
    const data::Corpus corpus = corpus_for(o, folder, model->config().tokenizer);
    const data::CorpusPart& part = part_of(corpus, o);
    data::MaskOptions masks;
    masks.rate = config.text.mask_rate;
    const train::MaskedEvaluation e =
        train::evaluate_masked(*model, part, corpus.tokenizer, masks, options_for(o, config, *model, part));
    const std::string label = models::label_of(model->config().model);
    table.add({label, significant(e.loss, 5), significant(100 * e.accuracy, 4) + "%",
               with_commas(static_cast<long long>(e.tokens))});
    json["runs"].push_back({{"run", folder},
                            {"attention", label},
                            {"loss", e.loss},
                            {"masked_accuracy", e.accuracy},
                            {"masked_tokens", e.tokens}});
  }
  std::printf("%s", o.json ? (json.dump(1) + '\n').c_str() : table.text().c_str());
}

}  // namespace

void eval_language(const EvalOptions& asked) {
  const Request o = checked(asked);
  if (runs::read_run(o.runs.front()).data.task == "mlm") {
    eval_masked(o);
    return;
  }
  std::vector<Evaluated> runs;
  for (const std::string& folder : o.runs) runs.push_back(evaluate_run(o, folder));
  const std::vector<Evaluated> floors = floors_of(o);
  if (o.json) {
    print_json(o, floors, runs);
    return;
  }
  print_tables(o, floors, runs);
  print_advice(floors, runs);
  print_contexts(floors, runs);
}

}  // namespace cosformer::cli
