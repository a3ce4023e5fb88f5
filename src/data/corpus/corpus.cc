#include "data/corpus/corpus.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file_lock.h"
#include "base/formats/json_text.h"
#include "base/formats/sha256.h"
#include "base/parallel.h"
#include "data/corpus/corpus_cache.h"
#include "data/corpus/corpus_files.h"
#include "data/corpus/corpus_reader.h"
#include "data/corpus/corpus_split.h"
#include "data/corpus/corpus_tokens.h"
#include "data/readers/file_content.h"

namespace cosformer::data {
namespace {

using Json = nlohmann::json;

// To be raised when the same text and options give other tokens or counts than before.
constexpr int kTokensVersion = 1;
constexpr std::uint64_t kAlwaysVerified = std::uint64_t{64} << 20;  // bytes of a cache that are checked in no time

constexpr std::array<std::pair<DocumentRule, const char*>, 4> kRules = {{
    {DocumentRule::kFiles, "files"},
    {DocumentRule::kBlankLines, "blank_lines"},
    {DocumentRule::kLines, "lines"},
    {DocumentRule::kStream, "stream"},
}};

struct OpenedCache {
  std::shared_ptr<const TokenCache> cache;
  bool built = false;
};

Sha256::Digest key_of(const std::vector<HashedFile>& files, const CorpusOptions& options, const Tokenizer& tokenizer) {
  Json key = {{"version", kTokensVersion},
              {"tokenizer", tokenizer.hash()},
              {"documents", document_rule_name(options.documents)},
              {"text_field", options.text_field},
              {"skip_bad_rows", options.rows.skip_bad_rows}};
  for (const HashedFile& file : files) key["files"].push_back({{"hash", file.hash}, {"jsonl", is_jsonl(file.path)}});
  return sha256(key.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string description_of(const std::vector<HashedFile>& files, const CorpusOptions& options,
                           const Tokenizer& tokenizer, const LoadReport& report) {
  Json description = {{"tokenizer", tokenizer.hash()},
                      {"tokenizer_kind", tokenizer.kind_name()},
                      {"documents", document_rule_name(options.documents)},
                      {"rows_used", report.rows_used},
                      {"rows_skipped", report.rows_skipped},
                      {"first_reasons", report.first_reasons}};
  for (const HashedFile& file : files) {
    description["files"].push_back({{"path", file.path}, {"bytes", file.stamp.size}, {"hash", file.hash}});
  }
  return description.dump(-1, ' ', false, Json::error_handler_t::replace);
}

LoadReport report_of(const TokenCache& cache) {
  LoadReport report;
  const auto description = parse_json(cache.description(), cache.path());
  const auto count = [&](const char* key) {
    return static_cast<std::uint64_t>(json_whole(description, key, 0, cache.path()));
  };
  report.rows_used = count("rows_used");
  report.rows_skipped = count("rows_skipped");
  for (const Json& reason : description.value("first_reasons", Json::array())) {
    if (reason.is_string()) report.first_reasons.push_back(reason.get<std::string>());
  }
  return report;
}

void build_cache(const std::string& path, const Sha256::Digest& key, const std::vector<HashedFile>& files,
                 const CorpusOptions& options, const Tokenizer& tokenizer) {
  std::vector<std::string> paths;
  std::uint64_t total = 0;
  for (const HashedFile& file : files) {
    paths.push_back(file.path);
    total += file.stamp.size;
  }
  const unsigned threads = thread_count(options.threads);
  const Progress progress = options.progress ? options.progress("tokenising") : Progress();
  BlockReader reader(paths, options.documents, tokenizer.cuts(), BlockReader::kBlockBytes, options.longest_line);
  TokenCacheWriter writer(path, key, tokenizer.vocabulary());
  LoadReport report;
  std::vector<TextBlock> texts(std::size_t{4} * threads);
  std::vector<TokenBlock> blocks(texts.size());
  for (std::size_t count = texts.size(); count == texts.size();) {
    count = 0;
    while (count < texts.size() && reader.next(texts[count])) ++count;
    run_pieces(count, threads,
               [&](std::size_t i) { blocks[i] = tokenize_block(texts[i], paths[texts[i].file], options, tokenizer); });
    for (std::size_t i = 0; i < count; ++i) {
      if (!blocks[i].problem.empty()) throw UserError(blocks[i].problem);
      writer.add(blocks[i].ids, blocks[i].ends);
      report.add(blocks[i].report);
    }
    if (progress && count > 0) progress(std::min(reader.consumed(), total), total);
  }
  for (const HashedFile& file : files) {
    if (file_stamp(file.path) != file.stamp) {
      throw Failure(fmt::format("'{}' was changed while it was tokenised; run again when it is complete", file.path));
    }
  }
  if (writer.counts().tokens == 0) {
    const std::string first =
        report.first_reasons.empty() ? "" : "; the first row left out: " + report.first_reasons[0];
    throw UserError(fmt::format("there is no text in '{}'{}{}; give files that hold some", paths.front(),
                                paths.size() > 1 ? " and the other files" : "", first));
  }
  writer.finish(description_of(files, options, tokenizer, report));
}

std::shared_ptr<const TokenCache> open_if_intact(const std::string& path, const Sha256::Digest& key, bool verify) {
  if (!is_file(path)) return nullptr;
  try {
    return std::make_shared<TokenCache>(path, key, verify || std::filesystem::file_size(path) <= kAlwaysVerified);
  } catch (const UserError&) {
    return nullptr;  // torn or damaged: it is made again
  } catch (const std::filesystem::filesystem_error&) {
    return nullptr;  // removed meanwhile
  }
}

OpenedCache open_cache(const std::vector<std::string>& given, const std::string& folder, const CorpusOptions& options,
                       const Tokenizer& tokenizer) {
  const std::vector<HashedFile> files = hash_files(corpus_files(given), folder, options);
  const Sha256::Digest key = key_of(files, options, tokenizer);
  const std::string path = folder + "/" + hexadecimal(key).substr(0, 32) + ".tokens";
  if (auto cache = open_if_intact(path, key, options.verify)) return {cache, false};
  const FileLock lock(path);
  if (auto cache = open_if_intact(path, key, options.verify)) return {cache, false};  // another process was faster
  lock.remove_leftovers();
  build_cache(path, key, files, options, tokenizer);
  return {std::make_shared<TokenCache>(path, key, true), true};  // what was written is what can be read
}

void require_possible(const CorpusOptions& options) {
  if (options.train.empty()) throw UserError("no text was given; expected files or folders to read");
  if (options.text_field.empty()) throw UserError("the name of the text field is empty; expected a key of JSONL rows");
  const double valid = options.valid_fraction, test = options.test_fraction;
  if (!(valid >= 0 && valid < 1) || !(test >= 0 && test < 1) || !(valid + test < 1)) {
    throw UserError(fmt::format(
        "the shares that are held out must be from 0 to below 1 together; got {} for validation and {} for the test",
        valid, test));
  }
}

}  // namespace

DocumentRule document_rule(const std::string& name) {
  for (const auto& [rule, known] : kRules) {
    if (name == known) return rule;
  }
  throw UserError(
      fmt::format("there is no rule for documents '{}'; expected files, blank_lines, lines or stream", name));
}

std::string document_rule_name(DocumentRule rule) {
  for (const auto& [known, name] : kRules) {
    if (rule == known) return name;
  }
  return "";
}

Corpus open_corpus(const CorpusOptions& options, TokenizerPointer tokenizer) {
  require_possible(options);
  const std::string folder = options.cache_folder.empty() ? default_cache_folder() : options.cache_folder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UserError(fmt::format("cannot make the cache folder '{}': {}", folder, error.message()));

  Corpus corpus;
  const auto open_part = [&](const std::vector<std::string>& files) {
    OpenedCache opened = open_cache(files, folder, options, *tokenizer);
    corpus.cache_files.push_back(opened.cache->path());
    if (opened.built) corpus.caches_built.push_back(opened.cache->path());
    corpus.report.add(report_of(*opened.cache));
    return opened.cache;
  };
  const std::shared_ptr<const TokenCache> train = open_part(options.train);
  if (!options.valid.empty()) corpus.valid = CorpusPart(open_part(options.valid));
  if (!options.test.empty()) corpus.test = CorpusPart(open_part(options.test));

  SplitParts parts = split_cache(train, *tokenizer, options.valid.empty() ? options.valid_fraction : 0,
                                 options.test.empty() ? options.test_fraction : 0, options.split_seed);
  corpus.train = std::move(parts.train);
  if (options.valid.empty()) corpus.valid = std::move(parts.valid);
  if (options.test.empty()) corpus.test = std::move(parts.test);
  corpus.split = std::move(parts.how);
  corpus.tokenizer = std::move(tokenizer);
  return corpus;
}

void read_texts(const std::vector<std::string>& files_and_folders, const CorpusOptions& options,
                const std::function<bool(std::string_view text)>& use) {
  const std::vector<std::string> files = corpus_files(files_and_folders);
  BlockReader reader(files, DocumentRule::kStream, TextCuts::kAtNewlines, BlockReader::kBlockBytes,
                     options.longest_line);
  RowReporter reporter(options.rows);
  bool wanted = true;
  for (TextBlock block; wanted && reader.next(block);) {
    if (!block.jsonl) {
      wanted = use(block.text);
      continue;
    }
    for_each_row(block, files[block.file], options.text_field, reporter,
                 [&](const std::string& text) { wanted = wanted && use(text); });
  }
}

}  // namespace cosformer::data
