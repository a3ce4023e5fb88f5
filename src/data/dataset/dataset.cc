#include "data/dataset/dataset.h"

#include <stdexcept>

namespace cosformer::data {
namespace {

// Calls `use` with the elements as what they are.
template <typename Use>
void with_elements(const SequenceView& view, Use&& use) {
  switch (view.type) {
    case ElementType::kU8: return use(static_cast<const std::uint8_t*>(view.data));
    case ElementType::kU16: return use(static_cast<const std::uint16_t*>(view.data));
    case ElementType::kI32: return use(static_cast<const std::int32_t*>(view.data));
    case ElementType::kF32: return use(static_cast<const float*>(view.data));
  }
  throw std::logic_error("a sequence of an unknown element type");
}

void require_within(std::size_t count, const SequenceView& view) {
  if (count > view.size) throw std::logic_error("more elements asked for than the sequence has");
}

}  // namespace

std::size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::kU8: return 1;
    case ElementType::kU16: return 2;
    case ElementType::kI32:
    case ElementType::kF32: return 4;
  }
  throw std::logic_error("an unknown element type");
}

void SequenceView::copy_token_ids(std::size_t count, std::int32_t* destination) const {
  require_within(count, *this);
  if (type == ElementType::kF32) throw std::logic_error("token ids asked of a real-valued sequence");
  with_elements(*this, [&](const auto* elements) {
    for (std::size_t i = 0; i < count; ++i) destination[i] = static_cast<std::int32_t>(elements[i]) + kFirstToken;
  });
}

void SequenceView::copy_values(std::size_t count, float scale, float* destination) const {
  require_within(count, *this);
  with_elements(*this, [&](const auto* elements) {
    for (std::size_t i = 0; i < count; ++i) destination[i] = static_cast<float>(elements[i]) * scale;
  });
}

}  // namespace cosformer::data
