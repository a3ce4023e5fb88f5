// The text of many files in blocks of about a megabyte, read once from the first to the last, so that files may be
// larger than memory. Blocks end where other blocks can be tokenised without them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/corpus/corpus.h"
#include "data/readers/unpacked_file.h"

namespace cosformer::data {

struct TextBlock {
  std::size_t file = 0;  // its number among the files
  bool jsonl = false;
  std::string text;
  std::uint64_t first_line = 1;   // of JSONL: the number of the line that the block begins with
  bool continues_before = false;  // it begins inside a document
  bool continues_after = false;   // it ends inside one
  char byte_before = '\n';        // in the document that it continues
};

bool is_jsonl(const std::string& path);

class BlockReader {
 public:
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

  BlockReader(std::vector<std::string> files, DocumentRule rule, TextCuts cuts, std::size_t block_bytes = kBlockBytes,
              std::uint64_t longest = CorpusOptions().longest_line);
  ~BlockReader();

  // False at the end of the last file. Throws UserError when a piece that cannot be cut has `longest` bytes.
  bool next(TextBlock& block);
  // Bytes of the files that were read so far.
  std::uint64_t consumed() const;

 private:
  void open_next_file();
  void fill();
  // The length of a block, or 0 when more text is needed to find one. Sets whether a document goes on behind it.
  std::size_t find_cut(bool& continues) const;
  [[noreturn]] void refuse_long_piece() const;
  void take(std::size_t size, bool continues, TextBlock& block);

  std::vector<std::string> files_;
  DocumentRule rule_;
  TextCuts cuts_;
  std::size_t block_bytes_, wanted_;
  std::uint64_t longest_;
  std::size_t next_file_ = 0;
  std::unique_ptr<UnpackedFile> file_;
  bool jsonl_ = false, at_end_ = false;
  std::uint64_t line_ = 1, finished_bytes_ = 0;
  std::string buffer_;
  bool continues_ = false;
  char byte_before_ = '\n';
};

}  // namespace cosformer::data
