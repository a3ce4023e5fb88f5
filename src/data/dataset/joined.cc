#include "data/dataset/joined.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

namespace cosformer::data {
namespace {

class Joined : public Dataset {
 public:
  explicit Joined(std::vector<DatasetPointer> parts) : parts_(std::move(parts)), info_(parts_.at(0)->info()) {
    for (const DatasetPointer& part : parts_) {
      size_ += part->size();
      info_.max_length = std::max(info_.max_length, part->info().max_length);
    }
  }

  const DatasetInfo& info() const override { return info_; }
  std::size_t size() const override { return size_; }
  Lengths lengths(std::size_t index) const override {
    const Dataset& part = part_of(index);
    return part.lengths(index);
  }
  std::int32_t label(std::size_t index) const override {
    const Dataset& part = part_of(index);
    return part.label(index);
  }
  Example get(std::size_t index) const override {
    const Dataset& part = part_of(index);
    return part.get(index);
  }

 private:
  // Makes `index` that of the example in its part.
  const Dataset& part_of(std::size_t& index) const {
    for (const DatasetPointer& part : parts_) {
      if (index < part->size()) return *part;
      index -= part->size();
    }
    throw std::out_of_range(fmt::format("the joined data sets have {} examples", size_));
  }

  std::vector<DatasetPointer> parts_;
  DatasetInfo info_;
  std::size_t size_ = 0;
};

}  // namespace

DatasetPointer joined(std::vector<DatasetPointer> parts) {
  return std::make_shared<Joined>(std::move(parts));
}

}  // namespace cosformer::data
