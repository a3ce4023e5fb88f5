#include "runs/setting_readers.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/core.h>

#include "base/error.h"
#include "runs/run_folder.h"

namespace cosformer::runs {
namespace {

using Names = std::vector<std::string>;

struct Row {
  const char* who;  // for messages: "it is for …"
  Names readers;
  Names keys;
};

Names operator+(Names a, const Names& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Row> table() {
  const Names language{"lm", "mlm"}, pairs{"retrieval", "same_article", "text_pairs"};
  const Names tables{"text_files", "text_pairs", "text_to_text"}, sequences{"token_sequences", "value_sequences"};
  const Names images{"image", "pathfinder", "fashion_mnist", "idx_images", "png_images"};
  const Names own = tables + Names{"idx_images", "png_images"} + sequences;
  const Names published{"listops", "text", "retrieval", "same_article", "image", "pathfinder", "fashion_mnist"};
  const Names texts{"text", "text_files", "text_pairs"};  // that a tokenizer or a language model may read
  Names classifiers = published + own;
  std::erase(classifiers, "text_to_text");
  const Names in_rows = classifiers + Names{"text_to_text"};
  const Names read = in_rows + language;  // tasks whose data are somewhere
  const Names recall{data::kRecallTask};
  const Names all = read + recall;
  const auto without = [](Names names, const Names& some) {
    for (const std::string& name : some) std::erase(names, name);
    return names;
  };
  return {
      {"every task",
       all,
       {"data.task",
        "model.attention",
        "model.pattern",
        "model.pattern_options",
        "model.layers",
        "model.width",
        "model.heads",
        "model.head_dim",
        "model.feed_forward",
        "model.activation",
        "model.norm",
        "model.norm_place",
        "model.positions",
        "model.causal",
        "model.attention_bias",
        "model.dropout",
        "train.seed",
        "train.device",
        "train.precision",
        "train.steps",
        "train.epochs",
        "train.batch_size",
        "train.token_budget",
        "train.accumulate",
        "train.lr",
        "train.final_lr",
        "train.schedule",
        "train.warmup_steps",
        "train.warmup_fraction",
        "train.weight_decay",
        "train.beta1",
        "train.beta2",
        "train.adam_eps",
        "train.clip",
        "train.log_every",
        "train.eval_every",
        "train.eval_batch_size",
        "train.checkpoint_every",
        "train.checkpoint_minutes",
        "train.continued",
        "train.patience",
        "train.graph"}},
      {"tasks that read data", read, {"data.path", "data.split_seed"}},
      {"your own files, text and language models", own + Names{"text"} + language, {"data.valid_path"}},
      {"your own files, text, image and language models", own + Names{"text", "image"} + language, {"data.test_path"}},
      {"tasks without a validation part of their own",
       without(read, {"pathfinder", "retrieval"}),
       {"data.valid_fraction"}},
      {"your own files, language models and data.retrieval_source=same_article",
       own + language + Names{"same_article"},
       {"data.test_fraction"}},
      {"idx_images", {"idx_images"}, {"data.labels_path", "data.valid_labels_path", "data.test_labels_path"}},
      {"text_files, text_pairs and text_to_text", tables, {"data.format"}},
      {"tables: text_files, text_pairs, text_to_text, token_sequences and value_sequences",
       tables + sequences,
       {"data.header", "data.separator"}},
      {"text_files and text_pairs", {"text_files", "text_pairs"}, {"data.text_column"}},
      {"text_pairs", {"text_pairs"}, {"data.second_text_column"}},
      {"text_to_text",
       {"text_to_text"},
       {"data.source_column", "data.target_column", "text_to_text.decoder_attention", "text_to_text.cross_attention",
        "text_to_text.decoder_decay", "text_to_text.decoder_layers", "text_to_text.decode_examples"}},
      {"text_files, text_pairs, token_sequences and value_sequences",
       Names{"text_files", "text_pairs"} + sequences,
       {"data.label_column"}},
      {"images",
       images,
       {"data.reading", "data.shrink", "model.scan", "model.skip_blank", "train.flip", "train.rotate",
        "train.plain_epochs"}},
      {"texts and sequences, not images", without(read, images), {"data.max_length"}},
      {"token_sequences", {"token_sequences"}, {"data.vocabulary"}},
      {"text", {"text"}, {"data.lra_quirks"}},
      {"retrieval", {"retrieval", "same_article"}, {"data.retrieval_source"}},
      {"data.retrieval_source=same_article", {"same_article"}, {"data.passage_least"}},
      {"pathfinder", {"pathfinder"}, {"data.image_size"}},
      {"listops, pathfinder, recall and data.retrieval_source=same_article",
       Names{"listops", "pathfinder", "same_article"} + recall,
       {"data.generate_seed", "data.generate_train", "data.generate_valid", "data.generate_test"}},
      {"listops", {"listops"}, {"data.generate_longer_than", "data.generate_shorter_than"}},
      {"classifiers and text_to_text",
       in_rows,
       {"data.train_limit", "data.valid_limit", "data.test_limit", "train.fixed_width", "train.width_multiple"}},
      {"tasks of rows or files that can be bad", without(read, {"fashion_mnist"}), {"data.skip_bad_rows"}},
      {"language models, text_to_text and classifiers of text",
       texts + Names{"text_to_text"} + language,
       {"data.tokenizer"}},
      {"language models and text_to_text", Names{"text_to_text"} + language, {"data.tokenizer_vocabulary"}},
      {"language models (lm, mlm)",
       language,
       {"data.documents", "data.text_field", "data.max_line_megabytes", "data.window", "data.documents_apart",
        "data.cache", "language.cutoffs", "language.cutoff_divisor"}},
      {"language models and recall", language + recall, {"language.tied"}},
      {"recall",
       recall,
       {"recall.pairs", "recall.least_pairs", "recall.queries", "recall.length", "recall.keys", "recall.values",
        "recall.fillers", "recall.gaps", "recall.needle"}},
      {"lm", {"lm"}, {"data.carry"}},
      {"mlm", {"mlm"}, {"data.mask_rate"}},
      {"classifiers, language models and recall",
       classifiers + language + recall,
       {"model.stochastic_realizations", "model.stochastic_sines", "model.stochastic_gated"}},
      {"classifiers",
       classifiers,
       {"model.pooling", "model.pooled_norm", "train.layer_decay", "train.label_smoothing"}},
      {"pairs of documents: retrieval and text_pairs", pairs, {"model.pair_features"}},
      {"classifiers of text", texts, {"train.init"}},
  };
}

const Row& row_of(const std::string& key) {
  static const std::vector<Row> rows = table();
  // Which mechanism reads them is a table of its own.
  const std::string known = key.starts_with("attention.") ? "model.attention" : key;
  for (const Row& row : rows) {
    if (std::find(row.keys.begin(), row.keys.end(), known) != row.keys.end()) return row;
  }
  throw std::logic_error(fmt::format("nobody is said to read the setting '{}'", key));
}

}  // namespace

std::string reader_of(const data::DataConfig& config) {
  return config.task == "retrieval" && config.retrieval_source == "same_article" ? "same_article" : config.task;
}

std::vector<std::string> setting_readers() {
  return row_of("data.task").readers;
}

bool is_read_by(const std::string& key, const std::string& reader) {
  const Names& readers = row_of(key).readers;
  return std::find(readers.begin(), readers.end(), reader) != readers.end();
}

std::vector<std::string> unread_settings(const Settings& settings, const data::DataConfig& config) {
  RunConfig defaults;
  Settings unset;
  add_settings(unset, defaults);
  const auto now = settings.descriptions(), before = unset.descriptions();
  std::vector<std::string> keys;
  for (std::size_t at = 0; at < now.size(); ++at) {
    // A default that somebody wrote down, as a run's config.toml does, changes nothing.
    if (!settings.was_set(now[at].key) || now[at].value == before[at].value) continue;
    if (!is_read_by(now[at].key, reader_of(config))) keys.push_back(now[at].key);
  }
  return keys;
}

std::string with_readers(const std::string& key) {
  return fmt::format("{} (for {})", key, row_of(key).who);
}

void require_read(const Settings& settings, const data::DataConfig& config) {
  std::string list;
  const std::vector<std::string> keys = unread_settings(settings, config);
  if (keys.empty()) return;
  for (const std::string& key : keys) list += (list.empty() ? "" : ", ") + with_readers(key);
  throw UserError(
      fmt::format("settings: the task '{}' does not read {}; leave {} out (cosformer train --settings --task {} lists "
                  "what it reads)",
                  config.task, list, keys.size() > 1 ? "them" : "it", config.task));
}

}  // namespace cosformer::runs
