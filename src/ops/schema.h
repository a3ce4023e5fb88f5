// The text of schemas from the structs that hold the values.
#pragma once

#include <charconv>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "ops/options.h"

namespace cosformer::ops {

inline std::string schema_type(const at::Tensor&) {
  return "Tensor?";
}
inline std::string schema_type(bool) {
  return "bool";
}
inline std::string schema_type(double) {
  return "float";
}
inline std::string schema_type(const std::optional<double>&) {
  return "float?";
}
inline std::string schema_type(const std::string&) {
  return "str";
}

inline std::string schema_default(const at::Tensor&) {
  return "None";
}
inline std::string schema_default(bool x) {
  return x ? "True" : "False";
}
inline std::string schema_default(const std::optional<double>&) {
  return "None";
}
inline std::string schema_default(const std::string& x) {
  return '"' + x + '"';
}
inline std::string schema_default(double x) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), x).ptr};  // the shortest that is read as x again
}

// For visits of the fields of a struct: "type name, type name, …".
class SchemaText {
 public:
  template <class T>
  void add(const Field& field, const T& value, const std::string& standard = "", const char* prefix = "") {
    const bool required = (field.traits & kRequired) != 0;
    text_ += (text_.empty() ? "" : ", ") + (required ? "Tensor" : schema_type(value)) + ' ' + prefix + field.name;
    if (!standard.empty()) text_ += '=' + standard;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Of a record, without defaults.
template <class Record>
std::string schema_of(const Record& record, const char* prefix = "") {
  SchemaText schema;
  Record::each([&](const Field& field, const auto& value) { schema.add(field, value, "", prefix); }, record);
  return schema.text();
}

// Of the options with these traits, with the defaults that the struct has for them.
template <unsigned kTraits = kNoTraits, class Options>
std::string schema_of_options(const Options& standard) {
  SchemaText schema;
  for_each_option<kTraits>(
      [&schema](const Field& field, const auto& value) {
        const bool needed = (kTraits & kStreamed) != 0 && (field.traits & kStreamsNeedIt) != 0;
        schema.add(field, value, needed ? "" : schema_default(value));
      },
      standard);
  return schema.text();
}

}  // namespace cosformer::ops
