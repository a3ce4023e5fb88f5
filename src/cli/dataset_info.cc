#include "cli/dataset_info.h"

namespace cosformer::cli {

data::DatasetInfo dataset_info_of(const models::InputConfig& input, const std::string& task) {
  data::DatasetInfo info;
  info.name = task;
  info.content = input.vocabulary > 0 && input.image_width == 0 ? data::Content::kTokens : data::Content::kValues;
  info.vocabulary = input.image_width > 0 ? data::kByteVocabulary : input.vocabulary;
  info.value_scale = static_cast<float>(input.value_scale);
  info.pairs = input.pairs;
  info.width = input.image_width;
  info.height = input.image_height;
  info.classes = input.classes;
  info.max_length = input.max_length;
  return info;
}

}  // namespace cosformer::cli
