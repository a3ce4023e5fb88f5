// What readers do with a row they cannot use: stop with its place and reason, or count it and go on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset/array_dataset.h"

namespace cosformer::data {

struct RowPolicy {
  bool skip_bad_rows = false;
};

struct LoadReport {
  std::uint64_t rows_used = 0;
  std::uint64_t rows_skipped = 0;
  std::vector<std::string> first_reasons;  // of the first few skipped, in full
  std::uint64_t empty_images = 0;          // files without a byte, as the published Pathfinder folder has some
  std::uint64_t texts_cut = 0;             // longer than was asked for

  void add(const LoadReport& other);
};

struct Loaded {
  std::shared_ptr<const ArrayDataset> dataset;
  LoadReport report;
  std::vector<std::uint64_t> lines;  // on which each example began; of tables only
};

// Text from a file made fit for a message: cut to a readable length, control characters replaced.
std::string excerpt(std::string_view text);

// "cannot read 'PATH': REASON": for what concerns the whole file.
[[noreturn]] void refuse_file(const std::string& path, const std::string& reason);

class RowReporter {
 public:
  explicit RowReporter(RowPolicy policy) : policy_(policy) {}

  // `unit` is "line", "record", "image"; numbers count from 1. The reason says what was found and what was expected.
  // Throws UserError unless bad rows are skipped.
  void bad(const std::string& path, std::string_view unit, std::uint64_t number, const std::string& reason);
  // The same for an item that is a file of its own.
  void bad_file(const std::string& path, const std::string& reason);
  void empty_image() { ++report_.empty_images; }
  void text_cut() { ++report_.texts_cut; }
  // To be called for every example, or for none.
  void used_line(std::uint64_t line) { lines_.push_back(line); }

  const LoadReport& report() const { return report_; }

  // Finishes the data set; throws UserError when not one row could be used.
  Loaded finish(const std::string& path, DatasetBuilder& builder, DatasetInfo info);

 private:
  void bad_at(const std::string& place, const std::string& reason);

  RowPolicy policy_;
  LoadReport report_;
  std::vector<std::uint64_t> lines_;
};

}  // namespace cosformer::data
