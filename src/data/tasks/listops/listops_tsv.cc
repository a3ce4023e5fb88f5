#include "data/tasks/listops/listops_tsv.h"

#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "data/readers/delimited_text.h"
#include "data/readers/file_content.h"
#include "data/tasks/listops/listops.h"

namespace cosformer::data {
namespace {

constexpr std::string_view kSource = "Source", kTarget = "Target";
constexpr std::size_t kWriteBlock = std::size_t{1} << 20;

// Adds the row's example, or throws UserError with the reason alone.
void add_row(const std::vector<std::string>& fields, DatasetBuilder& builder) {
  if (fields.size() != 2) {
    throw UserError(fmt::format("it has {} columns; expected 2, an expression and its value", fields.size()));
  }
  const std::string& target = fields[1];
  if (target.size() != 1 || target[0] < '0' || target[0] > '9') {
    throw UserError(fmt::format("the value is {}; expected a digit", excerpt(target)));
  }
  const std::vector<listops::Symbol> symbols = listops::parse(fields[0]);
  const int value = listops::evaluate(symbols);
  if (value != target[0] - '0') {
    throw UserError(fmt::format("the value is given as {}, but the expression's is {}", target, value));
  }
  builder.add(std::span<const listops::Symbol>(symbols), value);
}

}  // namespace

Loaded load_listops_tsv(const std::string& path, RowPolicy policy) {
  const std::string content = read_content(path);
  DelimitedText rows(content, '\t', Quoting::kNone);
  DatasetBuilder builder(ElementType::kU8);
  RowReporter reporter(policy);
  bool first = true;
  for (DelimitedText::Row row; rows.next(row);) {
    const bool is_header = std::exchange(first, false) && row.fields.size() == 2 && row.fields[0] == kSource;
    if (is_header) continue;
    try {
      add_row(row.fields, builder);
    } catch (const UserError& error) {
      reporter.bad(path, "line", row.line, error.what());
    }
  }
  DatasetInfo info;
  info.name = "listops";
  info.vocabulary = listops::kSymbols + kFirstToken;
  for (int digit = 0; digit < 10; ++digit) info.classes.push_back(std::to_string(digit));
  return reporter.finish(path, builder, std::move(info));
}

void write_listops_tsv(const std::string& path, const Dataset& dataset) {
  AtomicFile file(path);
  std::string block = std::string(kSource) + "\t" + std::string(kTarget) + "\n";
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    const Example example = dataset.get(i);
    const auto* symbols = static_cast<const listops::Symbol*>(example.first.data);
    block += listops::to_published_text({symbols, example.first.size}) + "\t" + std::to_string(example.label) + "\n";
    if (block.size() >= kWriteBlock) {
      file.write(block.data(), block.size());
      block.clear();
    }
  }
  file.write(block.data(), block.size());
  file.commit();
}

}  // namespace cosformer::data
