#include "data/dataset/array_dataset.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

namespace cosformer::data {

ArrayDataset::ArrayDataset(DatasetInfo info, Arrays arrays, std::shared_ptr<const void> owner)
    : info_(std::move(info)), arrays_(arrays), owner_(std::move(owner)) {
  if (arrays_.ends.size() != arrays_.labels.size() * (info_.pairs ? 2 : 1)) {
    throw std::logic_error("a data set whose sequences and labels do not match in number");
  }
}

SequenceView ArrayDataset::sequence(std::size_t number) const {
  const std::uint64_t begin = number == 0 ? 0 : arrays_.ends[number - 1];
  return {arrays_.type, arrays_.elements + begin * size_of(arrays_.type),
          static_cast<std::size_t>(arrays_.ends[number] - begin)};
}

Lengths ArrayDataset::lengths(std::size_t index) const {
  const auto length = [&](std::size_t number) { return static_cast<std::int64_t>(sequence(number).size); };
  if (info_.pairs) return {length(2 * index), length(2 * index + 1)};
  return {length(index), 0};
}

Example ArrayDataset::get(std::size_t index) const {
  if (index >= size()) throw std::out_of_range(fmt::format("example {} of {}", index, size()));
  if (info_.pairs) return {sequence(2 * index), sequence(2 * index + 1), label(index)};
  return {sequence(index), {arrays_.type, nullptr, 0}, label(index)};
}

void DatasetBuilder::add_pair(std::string_view first, std::string_view second, std::int32_t label) {
  if (type_ != ElementType::kU8) throw std::logic_error("bytes given to a data set of wider elements");
  add_bytes(std::as_bytes(std::span(first)), std::as_bytes(std::span(second)), label);
}

void DatasetBuilder::add_bytes(std::span<const std::byte> first, std::span<const std::byte> second,
                               std::int32_t label) {
  const std::size_t element_size = size_of(type_);
  if (first.size() % element_size != 0 || (!pairs_ && !second.empty())) {
    throw std::logic_error("a sequence that does not fit its data set");
  }
  elements_.insert(elements_.end(), first.begin(), first.end());
  ends_.push_back(elements_.size() / element_size);
  if (pairs_) {
    elements_.insert(elements_.end(), second.begin(), second.end());
    ends_.push_back(elements_.size() / element_size);
  }
  labels_.push_back(label);
}

void DatasetBuilder::renumber_labels(std::span<const std::int32_t> new_label) {
  for (std::int32_t& label : labels_) {
    if (label >= 0) label = new_label[static_cast<std::size_t>(label)];
  }
}

std::shared_ptr<const ArrayDataset> DatasetBuilder::finish(DatasetInfo info) {
  struct Storage {
    std::vector<std::int32_t> labels;
    std::vector<std::uint64_t> ends;
    std::vector<std::byte> elements;
  };
  auto storage = std::make_shared<Storage>(
      Storage{std::exchange(labels_, {}), std::exchange(ends_, {}), std::exchange(elements_, {})});
  storage->elements.shrink_to_fit();

  info.pairs = pairs_;
  std::uint64_t longest = 0, begin = 0;
  for (const std::uint64_t end : storage->ends) longest = std::max(longest, end - std::exchange(begin, end));
  info.max_length = static_cast<std::int64_t>(longest);
  const ArrayDataset::Arrays arrays{type_, storage->labels, storage->ends, storage->elements.data()};
  return std::make_shared<ArrayDataset>(std::move(info), arrays, std::move(storage));
}

}  // namespace cosformer::data
