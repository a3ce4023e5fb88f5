#include "cli/language/data_text.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/progress.h"
#include "base/table.h"
#include "cli/terminal/numbers.h"
#include "cli/terminal/progress_line.h"
#include "data/corpus/corpus.h"
#include "data/tokenizers/stream_decoder.h"
#include "data/tokenizers/tokenizer_file.h"
#include "data/tokenizers/tokenizer_learning.h"

namespace cosformer::cli {
namespace {

constexpr std::size_t kSampleBytes = std::size_t{1} << 20;  // of text that a new tokenizer is shown on

struct TokenizerSettings {
  std::string kind = "sentencepiece", out;
  std::vector<std::string> inputs;
  data::LearningOptions learning;
  data::CorpusOptions corpus;
  long long vocabulary = 0, least_count = 1, sample_mb = 50;
};

struct CorpusSettings {
  data::CorpusOptions corpus;
  std::string tokenizer = "bytes", documents = "files";
  long long show = 0;
};

std::string number(std::uint64_t value) {
  return with_commas(static_cast<long long>(value));
}

double ratio(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

data::TokenizerPointer learn(const TokenizerSettings& s) {
  data::LearningOptions options = s.learning;
  options.kind = s.kind;
  options.vocabulary = s.vocabulary;
  options.least_count = static_cast<std::uint64_t>(s.least_count);
  options.sample_bytes = static_cast<double>(s.sample_mb) * 1e6;
  options.progress = [](const std::string& what, std::uint64_t bytes) {
    return progress_line(what, "B", static_cast<std::size_t>(bytes));
  };
  options.say = [](const std::string& note) { std::fprintf(stderr, "%s\n", note.c_str()); };
  return data::learn_tokenizer(s.inputs, s.corpus, options);
}

void make_tokenizer(const TokenizerSettings& s) {
  require_writable(s.out);
  const auto begin = std::chrono::steady_clock::now();
  data::TokenizerPointer tokenizer = data::byte_tokenizer();
  if (s.kind != "bytes") {
    if (s.inputs.empty()) throw UserError("--input is missing: the texts that a vocabulary is learned from");
    tokenizer = learn(s);
  }
  data::save_tokenizer(s.out, *tokenizer);
  std::printf("wrote %s: %s, %s tokens, hash %s\n", s.out.c_str(), tokenizer->kind_name().c_str(),
              number(static_cast<std::uint64_t>(tokenizer->vocabulary())).c_str(),
              tokenizer->hash().substr(0, 16).c_str());
  if (s.inputs.empty()) return;
  std::string sample;
  data::read_texts(s.inputs, s.corpus, [&](std::string_view text) {
    sample += text.substr(0, kSampleBytes - std::min(sample.size(), kSampleBytes));
    return sample.size() < kSampleBytes;
  });
  const std::vector<std::int32_t> ids = tokenizer->encode(sample);
  std::printf("%s bytes a token on the beginning of the text; learned in %s\n",
              significant(ratio(sample.size(), ids.size()), 3).c_str(),
              human_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()).c_str());
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(ids.size(), 24); ++i) names += " " + tokenizer->token_name(ids[i]);
  std::printf("it begins:%s\n", names.c_str());
}

void show_documents(const data::Corpus& corpus, long long count) {
  const data::CorpusPart& part = corpus.train;
  std::vector<std::uint64_t> starts;
  for (std::uint64_t end = 4096; starts.size() < static_cast<std::size_t>(count) + 1 && end < 2 * part.tokens();
       end *= 4) {
    starts.clear();
    part.document_starts(0, end, starts);
  }
  starts.push_back(part.tokens());
  for (std::size_t i = 0; i + 1 < starts.size() && i < static_cast<std::size_t>(count); ++i) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(std::min<std::uint64_t>(starts[i + 1] - starts[i], 60)));
    part.read(starts[i], ids);
    data::StreamDecoder decoder(corpus.tokenizer);
    std::string text;
    for (const std::int32_t id : ids) text += decoder.push(id);
    std::printf("document %s, %s tokens: %s\n", number(i + 1).c_str(), number(starts[i + 1] - starts[i]).c_str(),
                data::excerpt(text).c_str());
  }
}

void show_corpus(CorpusSettings& s) {
  s.corpus.documents = data::document_rule(s.documents);
  s.corpus.progress = [](const std::string& what) { return progress_line(what, "B"); };
  const data::Corpus corpus = data::open_corpus(s.corpus, data::open_tokenizer(s.tokenizer));
  Table table({"part", "documents", "tokens", "bytes", "words", "lines", "tokens/byte", "bytes/token"});
  for (const auto& [name, part] :
       {std::pair{"train", &corpus.train}, {"valid", &corpus.valid}, {"test", &corpus.test}}) {
    const data::TextCounts& counts = part->counts();
    if (counts.tokens == 0) continue;
    table.add({name, number(counts.documents), number(counts.tokens), number(counts.bytes), number(counts.words),
               number(counts.lines), significant(ratio(counts.tokens, counts.bytes)),
               significant(ratio(counts.bytes, counts.tokens))});
  }
  std::printf("tokenizer: %s, %s tokens, hash %s\n%s", corpus.tokenizer->kind_name().c_str(),
              number(static_cast<std::uint64_t>(corpus.tokenizer->vocabulary())).c_str(),
              corpus.tokenizer->hash().substr(0, 16).c_str(), table.text().c_str());
  if (!corpus.split.empty()) std::printf("held out: %s\n", corpus.split.c_str());
  if (corpus.report.rows_skipped > 0) {
    std::printf("%s rows were left out of %s; the first:\n", number(corpus.report.rows_skipped).c_str(),
                number(corpus.report.rows_skipped + corpus.report.rows_used).c_str());
    for (const std::string& reason : corpus.report.first_reasons) std::printf("  %s\n", reason.c_str());
  }
  for (const std::string& file : corpus.cache_files) {
    const bool built =
        std::find(corpus.caches_built.begin(), corpus.caches_built.end(), file) != corpus.caches_built.end();
    std::printf("%s %s (%s)\n", built ? "made" : "opened", file.c_str(),
                human_bytes(static_cast<double>(std::filesystem::file_size(file))).c_str());
  }
  show_documents(corpus, s.show);
}

void add_row_options(CLI::App& app, data::CorpusOptions& options) {
  app.add_option("--text-field", options.text_field, "The text of a JSONL row has this key.")->capture_default_str();
  app.add_option_function<std::uint64_t>(
         "--max-line-megabytes", [&options](std::uint64_t megabytes) { options.longest_line = megabytes << 20; },
         "A line, JSONL row or document that is tokenised at once may have this many megabytes, by default 64; a "
         "longer one is an error.")
      ->check(whole_number(1, 1 << 20));
  app.add_flag("--skip-bad-rows", options.rows.skip_bad_rows, "Counts JSONL rows that cannot be used, and goes on.");
}

}  // namespace

void add_data_tokenizer(CLI::App& app) {
  const auto s = std::make_shared<TokenizerSettings>();
  app.footer(
      "Learns a vocabulary from texts (files or folders; *.jsonl and *.gz are understood) and writes it as one file.\n"
      "SentencePiece models that are learned here lose nothing: decoding gives the text's bytes back.");
  app.add_option("--kind", s->kind, "Makes a tokenizer of this kind.")
      ->check(CLI::IsMember({"sentencepiece", "words", "bytes"}))
      ->capture_default_str();
  app.add_option(
         "--vocabulary", s->vocabulary,
         "The tokenizer has this many tokens (of sentencepiece, by default 8000) or at most this many words (0: all).")
      ->check(whole_number(0, 100'000'000));
  app.add_option("--input", s->inputs, "Learns from these files or folders of text.");
  app.add_option("--out", s->out, "Writes this file.")->required();
  app.add_option("--model", s->learning.pieces, "SentencePiece learns this kind of model.")
      ->check(CLI::IsMember({"unigram", "bpe"}))
      ->capture_default_str();
  app.add_option("--sample-mb", s->sample_mb,
                 "SentencePiece learns from this many megabytes of the text, taken evenly from all of it.")
      ->check(whole_number(1, 100'000))
      ->capture_default_str();
  app.add_option("--least-count", s->least_count, "Words that occur fewer times than this become <unk>.")
      ->check(whole_number(1, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--threads", s->learning.threads,
                 "SentencePiece learns on this many CPU threads; 0: as many as there are cores.")
      ->check(thread_number())
      ->capture_default_str();
  add_row_options(app, s->corpus);
  app.callback([s] { make_tokenizer(*s); });
}

void add_data_corpus(CLI::App& app) {
  const auto s = std::make_shared<CorpusSettings>();
  app.footer(
      "Tokenises texts into a cache (once; a changed text or tokenizer is noticed) and tells what they hold. Training\n"
      "does the same by itself.");
  app.add_option("--input", s->corpus.train, "Reads these files or folders of text, *.jsonl or *.gz among them.")
      ->required();
  app.add_option("--valid", s->corpus.valid,
                 "Reads the validation part from these; otherwise it is --valid-fraction of --input.");
  app.add_option("--test", s->corpus.test,
                 "Reads the test part from these; otherwise it is --test-fraction of --input.");
  app.add_option("--tokenizer", s->tokenizer,
                 "Tokenises with this: bytes, or a tokenizer's file (of data tokenizer, a SentencePiece .model, a word "
                 "list .txt).")
      ->capture_default_str();
  app.add_option("--documents", s->documents,
                 "A document ends at the end of files, at blank_lines, or at the end of lines; stream: never.")
      ->capture_default_str();
  app.add_option("--valid-fraction", s->corpus.valid_fraction,
                 "This share of the text is held out for validation, where --valid is not given.")
      ->check(real_number(0, 1))
      ->capture_default_str();
  app.add_option("--test-fraction", s->corpus.test_fraction,
                 "This share of the text is held out for the test, where --test is not given.")
      ->check(real_number(0, 1))
      ->capture_default_str();
  app.add_option("--split-seed", s->corpus.split_seed, "Which documents are held out follows from this number.")
      ->check(seed_number())
      ->capture_default_str();
  app.add_option("--cache", s->corpus.cache_folder,
                 "Keeps tokenised text in this folder; by default in the user's cache.");
  app.add_flag("--verify", s->corpus.verify, "Checks every byte of caches that are there already.");
  app.add_option("--threads", s->corpus.threads,
                 "Uses this many CPU threads, which changes nothing of the result; 0: as many as there are cores.")
      ->check(thread_number())
      ->capture_default_str();
  app.add_option("--show", s->show, "Prints the beginning of this many documents.")->check(whole_number(0, 1'000'000));
  add_row_options(app, s->corpus);
  app.callback([s] { show_corpus(*s); });
}

}  // namespace cosformer::cli
