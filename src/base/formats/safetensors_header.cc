#include "base/formats/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/formats/json_text.h"

namespace cosformer::safetensors {
namespace {

// Follows the parser through the header. The header's form is fixed, so each place admits one kind of value; anything
// else, nesting included, ends the parse at once. No document is built, and keys pass through here one by one, which is
// how repeated ones are seen.
class HeaderHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderHandler(std::uint64_t data_size, const std::string& path) : data_size_(data_size), path_(path) {}

  Header take() { return std::move(header_); }

  bool null() override { unexpected("null"); }
  bool boolean(bool value) override { unexpected(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    if (value < 0) unexpected(std::to_string(value));
    return number_unsigned(static_cast<number_unsigned_t>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        unexpected(std::to_string(value));
      }
      if (entry_.shape.size() == kMaxRank) fault(fmt::format("'shape' has more than {} dimensions", kMaxRank));
      entry_.shape.push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::kOffsets) {
      if (offset_count_ == 2) fault("'data_offsets' has more than the 2 numbers expected");
      (offset_count_++ == 0 ? entry_.begin : entry_.end) = value;
    } else {
      unexpected(fmt::format("the number {}", value));
    }
    return true;
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override { unexpected("the number " + cut(text)); }
  bool string(string_t& value) override {
    if (place_ == Place::kDType) {
      const auto dtype = dtype_named(value);
      if (!dtype) fault(fmt::format("unknown dtype {}; expected one of {}", in_quotes(value), known_dtypes()));
      entry_.dtype = *dtype;
      place_ = Place::kFields;
    } else if (place_ == Place::kMetadataText) {
      header_.metadata[metadata_key_] = std::move(value);
      place_ = Place::kMetadataKeys;
    } else {
      unexpected("the text " + in_quotes(value));
    }
    return true;
  }
  bool binary(binary_t& /*value*/) override { unexpected("binary data"); }

  bool start_object(std::size_t /*count*/) override {
    switch (place_) {
      case Place::kFile: place_ = Place::kNames; break;
      case Place::kTensor: place_ = Place::kFields; break;
      case Place::kMetadata: place_ = Place::kMetadataKeys; break;
      default: unexpected("an object");
    }
    return true;
  }
  bool key(string_t& value) override {
    if (place_ == Place::kNames) {
      begin_name(value);
    } else if (place_ == Place::kFields) {
      begin_field(value);
    } else {  // kMetadataKeys: the parser gives keys inside objects only
      if (header_.metadata.count(value) != 0) fault(fmt::format("the key {} appears twice", in_quotes(value)));
      metadata_key_ = std::move(value);
      place_ = Place::kMetadataText;
    }
    return true;
  }
  bool end_object() override {
    if (place_ == Place::kFields) finish_tensor();
    place_ = place_ == Place::kNames ? Place::kFile : Place::kNames;
    return true;
  }
  bool start_array(std::size_t /*count*/) override {
    switch (place_) {
      case Place::kShapeArray: place_ = Place::kShape; break;
      case Place::kOffsetsArray: place_ = Place::kOffsets; break;
      default: unexpected("an array");
    }
    return true;
  }
  bool end_array() override {
    if (place_ == Place::kOffsets && offset_count_ != 2) {
      fault(fmt::format("'data_offsets' has {} numbers; expected 2, begin and end", offset_count_));
    }
    place_ = Place::kFields;
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& error) override {
    refuse_file(path_, fmt::format("its header is not valid JSON in UTF-8 ({})", json_fault(error)));
  }

 private:
  // Where in the header the parser stands, named by what comes next.
  enum class Place {
    kFile,
    kNames,
    kTensor,
    kFields,
    kDType,
    kShapeArray,
    kShape,
    kOffsetsArray,
    kOffsets,
    kMetadata,
    kMetadataKeys,
    kMetadataText
  };

  static std::string cut(std::string_view text) { return std::string(text.substr(0, 200)); }

  [[noreturn]] void fault(const std::string& what) const {
    refuse_file(path_, (subject_.empty() ? "" : subject_ + ": ") + what);
  }

  [[noreturn]] void unexpected(const std::string& found) const {
    switch (place_) {
      case Place::kTensor: fault("expected an object with dtype, shape and data_offsets, found " + found);
      case Place::kDType: fault("'dtype' must be text such as \"F32\", found " + found);
      case Place::kShapeArray: fault("'shape' must be an array of non-negative integers, found " + found);
      case Place::kShape: fault("'shape' must hold non-negative integers below 2^63, found " + found);
      case Place::kOffsetsArray: fault("'data_offsets' must be an array of 2 integers, found " + found);
      case Place::kOffsets: fault("'data_offsets' must hold non-negative integers below 2^64, found " + found);
      case Place::kMetadata: fault("expected an object from text to text, found " + found);
      case Place::kMetadataText:
        fault(fmt::format("the value of {} must be text, found {}", in_quotes(metadata_key_), found));
      default: fault("its header must be a JSON object, found " + found);
    }
  }

  void begin_name(const std::string& name) {
    subject_.clear();
    if (name.empty()) fault("a tensor has an empty name");
    if (!names_.insert(name).second)
      fault(fmt::format("the name {} appears twice; expected one tensor per name", in_quotes(name)));
    if (name == kMetadataName) {
      subject_ = kMetadataName;
      place_ = Place::kMetadata;
      return;
    }
    subject_ = "tensor " + in_quotes(name);
    entry_ = Entry{};
    entry_.name = name;
    offset_count_ = 0;
    seen_dtype_ = seen_shape_ = seen_offsets_ = false;
    place_ = Place::kTensor;
  }

  void begin_field(const std::string& field) {
    const auto enter = [&](bool& seen, Place next) {
      if (std::exchange(seen, true)) fault(fmt::format("the field {} appears twice", in_quotes(field)));
      place_ = next;
    };
    if (field == "dtype") {
      enter(seen_dtype_, Place::kDType);
    } else if (field == "shape") {
      enter(seen_shape_, Place::kShapeArray);
    } else if (field == "data_offsets") {
      enter(seen_offsets_, Place::kOffsetsArray);
    } else {
      fault(fmt::format("unknown field {}; expected dtype, shape and data_offsets", in_quotes(field)));
    }
  }

  void finish_tensor() {
    if (!seen_dtype_) fault("'dtype' is missing");
    if (!seen_shape_) fault("'shape' is missing");
    if (!seen_offsets_) fault("'data_offsets' is missing");
    const std::string offsets = fmt::format("[{}, {}]", entry_.begin, entry_.end);
    const auto bytes = byte_count(entry_.dtype, entry_.shape);
    if (!bytes) fault(fmt::format("the shape {} has more elements than memory can hold", text_of(entry_.shape)));
    if (entry_.begin > entry_.end) fault(fmt::format("data_offsets {} end before they begin", offsets));
    if (entry_.end > data_size_) {
      fault(
          fmt::format("data_offsets {} reach past the {} bytes of data that the file holds: it was cut short, or the "
                      "offsets are wrong",
                      offsets, data_size_));
    }
    if (entry_.size() != *bytes) {
      fault(fmt::format("data_offsets {} hold {} bytes, but {} of shape {} needs {}", offsets, entry_.size(),
                        std::string(name_of(entry_.dtype)), text_of(entry_.shape), *bytes));
    }
    header_.entries.push_back(std::move(entry_));
    subject_.clear();
  }

  const std::uint64_t data_size_;
  const std::string& path_;
  Header header_;
  Place place_ = Place::kFile;
  std::set<std::string> names_;
  std::string subject_;  // what the parser is inside of, for messages
  std::string metadata_key_;
  Entry entry_;  // the tensor being read
  int offset_count_ = 0;
  bool seen_dtype_ = false, seen_shape_ = false, seen_offsets_ = false;
};

void require_exact_cover(const std::vector<Entry>& entries, std::uint64_t data_size, const std::string& path) {
  std::uint64_t covered = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < covered) {
      refuse_file(path,
                  fmt::format("tensor {}: its data begins at byte {} and overlaps another tensor's, which ends at {}",
                              in_quotes(entry.name), entry.begin, covered));
    }
    if (entry.begin > covered) {
      refuse_file(path, fmt::format("tensor {}: its data begins at byte {} and leaves a hole; expected {}",
                                    in_quotes(entry.name), entry.begin, covered));
    }
    covered = entry.end;
  }
  if (covered != data_size) {
    refuse_file(path, fmt::format("{} bytes follow the last tensor; expected the file to end", data_size - covered));
  }
}

}  // namespace

Header parse_header(std::string_view text, std::uint64_t data_size, const std::string& path) {
  if (text.empty() || text.front() != '{') {  // also keeps a byte order mark out, which the parser would skip
    refuse_file(path, "its header does not begin with '{'");
  }
  if (text.find('\0') != std::string_view::npos) {  // the parser would take it for the end of the text
    refuse_file(path, "its header is not valid JSON in UTF-8 (it holds a zero byte)");
  }
  HeaderHandler handler(data_size, path);
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);  // faults leave it as exceptions
  Header header = handler.take();
  std::sort(header.entries.begin(), header.entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);  // tensors without bytes go first
  });
  require_exact_cover(header.entries, data_size, path);
  return header;
}

}  // namespace cosformer::safetensors
