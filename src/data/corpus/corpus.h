// Text as one long row of tokens with its documents: what language models train on and are judged by.
//
// Text is tokenised once, on all cores, into a cache file that is read place by place afterwards (corpus_cache.h), so
// that a corpus may be larger than memory. Whatever the number of threads, the tokens are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset/row_report.h"
#include "data/tasks/generated_splits.h"
#include "data/tokenizers/tokenizer.h"

namespace cosformer::data {

// Where a document of a text file ends. A row of JSONL is a document always.
enum class DocumentRule {
  kFiles,       // with its file
  kBlankLines,  // at lines of nothing but white space, which belong to no document
  kLines,       // with its line
  kStream,      // never: all text files together are one document, and no <eod> is added
};

// "files", "blank_lines", "lines", "stream". Throws UserError for other names.
DocumentRule document_rule(const std::string& name);
std::string document_rule_name(DocumentRule rule);

// What a text holds. Losses are summed over `tokens`; the other counts say per what they are to be reported.
struct TextCounts {
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;  // <eod> behind documents included
  std::uint64_t bytes = 0;   // of the documents' text
  std::uint64_t words = 0;   // between white space
  std::uint64_t lines = 0;   // newlines

  // The number of words that the literature divides by: each line's end counts as one.
  std::uint64_t words_and_lines() const { return words + lines; }
  bool operator==(const TextCounts&) const = default;
};

struct CorpusOptions {
  // Files and folders (read to any depth, sorted). Files named *.jsonl or *.ndjson are JSONL, others text; either may
  // be gzip (*.gz), which is unpacked in memory. In folders, hidden files are left out, and so are links to a folder
  // that they lie in.
  std::vector<std::string> train, valid, test;
  DocumentRule documents = DocumentRule::kFiles;
  std::string text_field = "text";  // of JSONL rows
  // Bytes of a line, a row or, where they are not cut, a document: it is held in memory and tokenised as one.
  std::uint64_t longest_line = std::uint64_t{64} << 20;
  RowPolicy rows;

  // Where no files are given for a part, this share of the training tokens is held out for it (corpus_split.h). 0: the
  // part stays empty.
  double valid_fraction = 0.01, test_fraction = 0;
  std::uint64_t split_seed = 0;

  std::string cache_folder;  // empty: default_cache_folder()
  bool verify = false;       // check all of the cache now, not when a place is first read
  unsigned threads = 0;      // 0: all cores

  // Begins a progress line of bytes for what is said ("reading", "tokenising"); may be empty.
  std::function<Progress(const std::string& what)> progress;
};

// $XDG_CACHE_HOME/cosformer/corpora, or .cache/cosformer/corpora in the home folder.
std::string default_cache_folder();

class TokenCache;  // corpus_cache.h

// A place in a cache, between two tokens: the segment that it lies in or begins, and what the cache holds before it.
struct TokenPlace {
  std::uint64_t segment = 0;
  TextCounts before;
};

// A part of a corpus as one row of tokens. Cheap to copy; every function may be called from several threads.
class CorpusPart {
 public:
  CorpusPart() = default;
  // All of a cache.
  explicit CorpusPart(std::shared_ptr<const TokenCache> cache);
  // The segments of it with these numbers, in rising order.
  CorpusPart(std::shared_ptr<const TokenCache> cache, const std::vector<std::uint64_t>& segments);
  // What lies between two places, which may be inside of segments.
  CorpusPart(std::shared_ptr<const TokenCache> cache, const TokenPlace& begin, const TokenPlace& end);

  const TextCounts& counts() const { return counts_; }
  std::uint64_t tokens() const { return counts_.tokens; }

  // Copies tokens [begin, begin + destination.size()). Throws std::out_of_range beyond the end, Failure when the cache
  // turns out to be damaged there (it is then removed, and made again by the next run).
  void read(std::uint64_t begin, std::span<std::int32_t> destination) const;

  // Appends the places in [begin, end) at which a document begins; 0 is always one.
  void document_starts(std::uint64_t begin, std::uint64_t end, std::vector<std::uint64_t>& places) const;

 private:
  // Neighbouring segments that are neighbours in the cache too; of the first and the last a part may be left out.
  struct Run {
    std::uint64_t part_begin = 0, cache_begin = 0, first_segment = 0, end_segment = 0;
  };
  void add_run(const TokenPlace& begin, const TokenPlace& end);
  std::size_t run_at(std::uint64_t place) const;

  std::shared_ptr<const TokenCache> cache_;
  std::vector<Run> runs_;
  TextCounts counts_;
};

struct Corpus {
  TokenizerPointer tokenizer;
  CorpusPart train, valid, test;
  LoadReport report;                      // rows of JSONL that were left out
  std::vector<std::string> cache_files;   // of train, valid and test, as far as files were given for them
  std::vector<std::string> caches_built;  // those of them that were not there before, or not intact
  std::string split;                      // how valid and test were come by, for people
};

// Opens the caches, after making those that are missing, torn or damaged. Throws UserError for missing or unreadable
// files, bad rows, files without any text, and parts that would be empty; Failure when the system fails.
Corpus open_corpus(const CorpusOptions& options, TokenizerPointer tokenizer);

// The files that open_corpus would read, in their order.
std::vector<std::string> corpus_files(const std::vector<std::string>& files_and_folders);

// Texts of the files one after another, in pieces of about a megabyte that are cut at lines: what tokenizers are
// learned from. `use` may return false to end early. JSONL gives the text of its rows.
void read_texts(const std::vector<std::string>& files_and_folders, const CorpusOptions& options,
                const std::function<bool(std::string_view text)>& use);

}  // namespace cosformer::data
