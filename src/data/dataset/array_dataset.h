// The one shape in which data sets lie in memory, built row by row or read from a file: all elements end to end,
// where each sequence ends, and the labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "data/dataset/dataset.h"

namespace cosformer::data {

class ArrayDataset : public Dataset {
 public:
  struct Arrays {
    ElementType type = ElementType::kU8;
    std::span<const std::int32_t> labels;
    std::span<const std::uint64_t> ends;  // in elements; of pairs: first, second, first, ...
    const std::byte* elements = nullptr;
  };
  // `owner` keeps the arrays alive.
  ArrayDataset(DatasetInfo info, Arrays arrays, std::shared_ptr<const void> owner);

  const DatasetInfo& info() const override { return info_; }
  std::size_t size() const override { return arrays_.labels.size(); }
  Lengths lengths(std::size_t index) const override;
  std::int32_t label(std::size_t index) const override { return arrays_.labels[index]; }
  Example get(std::size_t index) const override;

  const Arrays& arrays() const { return arrays_; }
  std::uint64_t element_count() const { return arrays_.ends.empty() ? 0 : arrays_.ends.back(); }

 private:
  SequenceView sequence(std::size_t number) const;

  DatasetInfo info_;
  Arrays arrays_;
  std::shared_ptr<const void> owner_;
};

// Collects examples in memory. The elements of every sequence must be of the builder's type.
class DatasetBuilder {
 public:
  explicit DatasetBuilder(ElementType type, bool pairs = false) : type_(type), pairs_(pairs) {}

  // For builders of kU8: text or pixels.
  void add(std::string_view first, std::int32_t label) { add_pair(first, {}, label); }
  void add_pair(std::string_view first, std::string_view second, std::int32_t label);
  template <typename Element>
  void add(std::span<const Element> sequence, std::int32_t label) {
    if (sizeof(Element) != size_of(type_)) throw std::logic_error("elements of another type than their data set's");
    add_bytes(std::as_bytes(sequence), {}, label);
  }

  std::size_t size() const { return labels_.size(); }
  // Replaces every label l >= 0 by new_label[l].
  void renumber_labels(std::span<const std::int32_t> new_label);

  // Fills in info.pairs and info.max_length; the builder is empty afterwards.
  std::shared_ptr<const ArrayDataset> finish(DatasetInfo info);

 private:
  void add_bytes(std::span<const std::byte> first, std::span<const std::byte> second, std::int32_t label);

  ElementType type_;
  bool pairs_;
  std::vector<std::int32_t> labels_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::byte> elements_;
};

}  // namespace cosformer::data
