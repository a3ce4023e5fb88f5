// Every setting and every task: what a task does not read is refused by name, what it reads is not.
#include "runs/setting_readers.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "runs/run_folder.h"

namespace cosformer::runs {
namespace {

using cosformer::testing::message_of;
using Names = std::set<std::string>;

// Who reads what, said a second time: all others than these are read by every task.
const std::map<std::string, Names>& expected() {
  static const Names language{"lm", "mlm"}, to_text{"text_to_text"}, texts{"text", "text_files", "text_pairs"};
  static const Names images{"image", "pathfinder", "fashion_mnist", "idx_images", "png_images"};
  static const Names tables{"text_files", "text_pairs", "text_to_text", "token_sequences", "value_sequences"};
  static const Names own{"text_files", "text_pairs",      "text_to_text",   "idx_images",
                         "png_images", "token_sequences", "value_sequences"};
  const auto with = [](Names a, const Names& b) {
    a.insert(b.begin(), b.end());
    return a;
  };
  const auto without = [](Names a, const Names& b) {
    for (const std::string& name : b) a.erase(name);
    return a;
  };
  const std::vector<std::string> names = setting_readers();
  const Names all(names.begin(), names.end());
  static const Names recall{"recall"};
  const Names classifiers = without(all, with(recall, with(language, to_text)));
  const Names read = without(all, recall);
  static const std::map<std::string, Names> table = {
      {"data.valid_path", with(own, with(language, {"text"}))},
      {"data.test_path", with(own, with(language, {"text", "image"}))},
      {"data.labels_path", {"idx_images"}},
      {"data.valid_labels_path", {"idx_images"}},
      {"data.test_labels_path", {"idx_images"}},
      {"data.format", {"text_files", "text_pairs", "text_to_text"}},
      {"data.separator", tables},
      {"data.header", tables},
      {"data.text_column", {"text_files", "text_pairs"}},
      {"data.second_text_column", {"text_pairs"}},
      {"data.source_column", to_text},
      {"data.target_column", to_text},
      {"data.label_column", without(tables, to_text)},
      {"data.reading", images},
      {"data.shrink", images},
      {"data.path", read},
      {"data.split_seed", read},
      {"data.max_length", without(read, images)},
      {"data.vocabulary", {"token_sequences"}},
      {"data.valid_fraction", without(read, {"pathfinder", "retrieval"})},
      {"data.test_fraction", with(own, with(language, {"same_article"}))},
      {"data.lra_quirks", {"text"}},
      {"data.retrieval_source", {"retrieval", "same_article"}},
      {"data.passage_least", {"same_article"}},
      {"data.image_size", {"pathfinder"}},
      {"data.generate_seed", {"listops", "pathfinder", "recall", "same_article"}},
      {"data.generate_train", {"listops", "pathfinder", "recall", "same_article"}},
      {"data.generate_valid", {"listops", "pathfinder", "recall", "same_article"}},
      {"data.generate_test", {"listops", "pathfinder", "recall", "same_article"}},
      {"data.generate_longer_than", {"listops"}},
      {"data.generate_shorter_than", {"listops"}},
      {"data.train_limit", without(read, language)},
      {"data.valid_limit", without(read, language)},
      {"data.test_limit", without(read, language)},
      {"data.skip_bad_rows", without(read, {"fashion_mnist"})},
      {"data.tokenizer", with(texts, with(language, to_text))},
      {"data.tokenizer_vocabulary", with(language, to_text)},
      {"data.documents", language},
      {"data.text_field", language},
      {"data.max_line_megabytes", language},
      {"data.window", language},
      {"data.documents_apart", language},
      {"data.carry", {"lm"}},
      {"data.mask_rate", {"mlm"}},
      {"data.cache", language},
      {"model.scan", images},
      {"model.skip_blank", images},
      {"model.stochastic_realizations", without(all, to_text)},
      {"model.stochastic_sines", without(all, to_text)},
      {"model.stochastic_gated", without(all, to_text)},
      {"model.pooling", classifiers},
      {"model.pooled_norm", classifiers},
      {"model.pair_features", {"retrieval", "same_article", "text_pairs"}},
      {"language.tied", with(language, recall)},
      {"language.cutoffs", language},
      {"language.cutoff_divisor", language},
      {"recall.pairs", recall},
      {"recall.least_pairs", recall},
      {"recall.queries", recall},
      {"recall.length", recall},
      {"recall.keys", recall},
      {"recall.values", recall},
      {"recall.fillers", recall},
      {"recall.gaps", recall},
      {"recall.needle", recall},
      {"text_to_text.decoder_attention", to_text},
      {"text_to_text.cross_attention", to_text},
      {"text_to_text.decoder_decay", to_text},
      {"text_to_text.decoder_layers", to_text},
      {"text_to_text.decode_examples", to_text},
      {"train.init", texts},
      {"train.fixed_width", without(read, language)},
      {"train.width_multiple", without(read, language)},
      {"train.flip", images},
      {"train.rotate", images},
      {"train.plain_epochs", images},
      {"train.layer_decay", classifiers},
      {"train.label_smoothing", classifiers},
  };
  return table;
}

// A run's settings with the task of a reader.
struct Given {
  explicit Given(const std::string& reader) {
    add_settings(settings, config);
    settings.set("data.task", reader == "same_article" ? "retrieval" : reader, "test");
    if (reader == "same_article") settings.set("data.retrieval_source", "same_article", "test");
  }
  RunConfig config;
  Settings settings;
};

// Some value other than the default.
void set_to_another(Settings& settings, const Settings::Description& d) {
  const std::vector<std::string> tries = {d.value == "true" ? "false" : "true", "0.5", "7", "3", "2", "1", "lm", "yes"};
  std::vector<std::string> values = tries;
  const std::size_t open = d.help.rfind('(');  // choices
  for (std::size_t begin = open; begin != std::string::npos && begin + 1 < d.help.size();) {
    const std::size_t end = std::min(d.help.find_first_of(",)", begin + 1), d.help.size());
    values.push_back(d.help.substr(begin + 1, end - begin - 1));
    begin = end + (d.help.compare(end, 2, ", ") == 0 ? 1 : d.help.size());
  }
  for (const std::string& value : values) {
    try {
      settings.set(d.key, value, "test");
    } catch (const UserError&) {
      continue;
    }
    for (const Settings::Description& now : settings.descriptions()) {
      if (now.key == d.key && now.value != d.value) return;
    }
  }
  FAIL() << "no other value for " << d.key << " is known to this test";
}

TEST(SettingReaders, EverySettingOfEveryTask) {
  const std::vector<std::string> readers = setting_readers();
  // The tasks that read data, recall, and a task with a source of its own.
  EXPECT_EQ(readers.size(), data::task_names().size() + data::language_tasks().size() + 2);
  std::set<std::string> seen;
  for (const std::string& reader : readers) {
    const Given plain(reader);
    EXPECT_EQ(reader_of(plain.config.data), reader);
    for (const Settings::Description& d : plain.settings.descriptions()) {
      seen.insert(d.key);
      const bool makes_reader = d.key == "data.retrieval_source" && plain.config.data.task == "retrieval";
      if (d.key == "data.task" || makes_reader) continue;
      const auto known = expected().find(d.key);
      const bool reads = known == expected().end() || known->second.count(reader) > 0;
      EXPECT_EQ(is_read_by(d.key, reader), reads) << d.key << " of " << reader;
      Given given(reader);
      set_to_another(given.settings, d);
      const std::string message = message_of<UserError>([&] { require_read(given.settings, given.config.data); });
      EXPECT_EQ(message.find("does not read " + d.key + " (for ") != std::string::npos, !reads)
          << d.key << " of " << reader << ": " << message;
    }
  }
  for (const auto& [key, names] : expected()) EXPECT_TRUE(seen.count(key) > 0) << key << " is no setting";
}

TEST(SettingReaders, NameEverythingThatIsNotRead) {
  Given given("lm");
  given.settings.set("data.train_limit", "5", "test");
  given.settings.set("train.layer_decay", "0.5", "test");
  const std::string message = message_of<UserError>([&] { require_read(given.settings, given.config.data); });
  EXPECT_NE(message.find("the task 'lm' does not read data.train_limit (for classifiers and text_to_text), "
                         "train.layer_decay (for classifiers); leave them out"),
            std::string::npos)
      << message;
}

// A run's config.toml has all settings: it may be given to another run.
TEST(SettingReaders, DefaultsThatAreWrittenDownAreRead) {
  for (const std::string& reader : setting_readers()) {
    Given effective(reader);
    try {
      apply_presets(effective.config, effective.settings);
    } catch (const UserError&) {
      continue;
    }
    Given again(reader);
    again.settings.read_toml(to_toml(effective.config), "config.toml");
    EXPECT_NO_THROW(require_read(again.settings, again.config.data)) << reader;
  }
}

// `cosformer train --settings` explains each setting in whole sentences; its readers and choices may follow.
TEST(SettingReaders, EverySettingIsDescribedInSentences) {
  const std::regex sentences(R"([A-Z].*\.( \[[^\]]*\])?( \([^)]*\))?)");
  Given given("lm");
  for (const Settings::Description& d : given.settings.descriptions()) {
    EXPECT_TRUE(std::regex_match(d.help, sentences)) << d.key << ": " << d.help;
    EXPECT_GE(std::count(d.help.begin(), d.help.end(), ' '), 3) << d.key << ": " << d.help;
  }
}

}  // namespace
}  // namespace cosformer::runs
