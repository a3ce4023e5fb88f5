// What every task looks like to a trainer: numbered examples of one or two sequences with a label.
//
// Sequences are stored compactly and widened when a batch is made. A stored element v of a token sequence has the id
// v + kFirstToken: the ids before it are the same in every data set and never stored. Text is its bytes: byte b has the
// id b + 2, so a vocabulary of bytes has 258 ids. A stored element v of a real-valued sequence (pixels, measurements)
// has the value v * info().value_scale; sequences of 8-bit pixels may be read as tokens as well.
//
// Not here: files (dataset_file.h and the readers), order and padding (epoch_plan.h, batch.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cosformer::data {

inline constexpr std::int32_t kPadToken = 0;
inline constexpr std::int32_t kClassToken = 1;  // for models that put a token of their own before the sequence
inline constexpr std::int32_t kFirstToken = 2;
inline constexpr std::int64_t kByteVocabulary = 256 + kFirstToken;
inline constexpr std::int32_t kNoLabel = -1;  // the example came without one

// The values are part of the file format.
enum class ElementType : std::uint8_t { kU8 = 1, kU16 = 2, kI32 = 3, kF32 = 4 };
enum class Content : std::uint8_t { kTokens = 1, kValues = 2 };

std::size_t size_of(ElementType type);

// A stored sequence; lives as long as its data set. `data` is aligned for its type.
struct SequenceView {
  ElementType type = ElementType::kU8;
  const void* data = nullptr;
  std::size_t size = 0;

  // The first `count` elements (count <= size) as ids or as real values. Ids of real-valued storage (kF32) do not
  // exist: std::logic_error.
  void copy_token_ids(std::size_t count, std::int32_t* destination) const;
  void copy_values(std::size_t count, float scale, float* destination) const;
};

struct Example {
  SequenceView first;
  SequenceView second;  // empty unless info().pairs
  std::int32_t label = kNoLabel;
};

struct Lengths {
  std::int64_t first = 0, second = 0;
};

struct DatasetInfo {
  std::string name;  // of the task
  Content content = Content::kTokens;
  std::int64_t vocabulary = 0;  // ids are below it; 0 when the elements cannot be read as tokens
  float value_scale = 1.0F;
  bool pairs = false;
  std::int64_t width = 0, height = 0;  // of the image that a sequence is, row by row; 0 when it is none
  std::vector<std::string> classes;    // names; a label is an index into them
  std::int64_t max_length = 0;         // of the longest sequence
  std::string provenance;              // generated data: the generator's options as JSON; otherwise empty
};

// Immutable; every function may be called from several threads.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const DatasetInfo& info() const = 0;
  virtual std::size_t size() const = 0;
  // index < size() in all of these.
  virtual Lengths lengths(std::size_t index) const = 0;
  virtual std::int32_t label(std::size_t index) const = 0;
  virtual Example get(std::size_t index) const = 0;
};

}  // namespace cosformer::data
