#include "train/inputs/language_data.h"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"
#include "data/tokenizers/tokenizer_learning.h"
#include "runs/run_tokenizer.h"

namespace cosformer::train {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> one_or_none(const std::string& path) {
  return path.empty() ? std::vector<std::string>{} : std::vector<std::string>{path};
}

data::CorpusOptions corpus_options(const runs::RunConfig& config, const TextProgress& progress) {
  if (config.data.path.empty()) {
    throw UserError(fmt::format(
        "no data was named (--data, or data.path); the task '{}' needs a file or a folder of text, *.jsonl or *.gz",
        config.data.task));
  }
  data::CorpusOptions options;
  options.train = {config.data.path};
  options.valid = one_or_none(config.data.valid_path);
  options.test = one_or_none(config.data.test_path);
  options.documents = data::document_rule(config.text.documents);
  options.text_field = config.text.text_field;
  options.longest_line = static_cast<std::uint64_t>(config.text.max_line_megabytes) << 20;
  options.rows.skip_bad_rows = config.data.skip_bad_rows;
  options.valid_fraction = config.data.valid_fraction;
  options.test_fraction = config.data.test_fraction;
  options.split_seed = static_cast<std::uint64_t>(config.data.split_seed);
  options.cache_folder = config.text.cache;
  options.progress = progress;
  return options;
}

}  // namespace

data::TokenizerPointer tokenizer_for(const runs::RunConfig& config, const std::string& run,
                                     const TextProgress& progress) {
  return tokenizer_for(config, run, progress, [&](const data::LearningOptions& options) {
    return data::learn_tokenizer({config.data.path}, corpus_options(config, progress), options);
  });
}

data::TokenizerPointer tokenizer_for(const runs::RunConfig& config, const std::string& run,
                                     const TextProgress& progress, const LearnTokenizer& learn) {
  const std::string& named = config.text.tokenizer;
  if (data::TokenizerPointer there = runs::kept_or_named_tokenizer(config, run)) return there;
  data::LearningOptions options;
  options.kind = named;
  options.vocabulary = config.text.tokenizer_vocabulary;
  options.vocabulary_key = "data.tokenizer_vocabulary";
  if (progress) {
    options.progress = [&](const std::string& what, std::uint64_t bytes) -> std::function<void(std::size_t)> {
      return [report = progress(what), bytes, done = std::size_t{0}](std::size_t more) mutable {
        done += more;
        report(done, static_cast<std::size_t>(bytes));
      };
    };
  }
  return learn(options);
}

LanguageData open_language_data(const runs::RunConfig& config, const data::TokenizerPointer& tokenizer,
                                const TextProgress& progress) {
  LanguageData data{data::open_corpus(corpus_options(config, progress), tokenizer), "", {}};
  const data::TextCounts& train = data.corpus.train.counts();
  const auto number = [](std::uint64_t value) { return with_commas(static_cast<long long>(value)); };
  data.description = fmt::format("{}: '{}'; {} training, {} validation, {} test tokens; {}, {} tokens",
                                 config.data.task, config.data.path, number(train.tokens),
                                 number(data.corpus.valid.tokens()), number(data.corpus.test.tokens()),
                                 tokenizer->kind_name(), number(static_cast<std::uint64_t>(tokenizer->vocabulary())));
  if (!data.corpus.split.empty()) data.notes.push_back(data.corpus.split);
  if (data.corpus.report.rows_skipped > 0) {
    data.notes.push_back(number(data.corpus.report.rows_skipped) + " bad rows were left out");
  }
  return data;
}

}  // namespace cosformer::train
