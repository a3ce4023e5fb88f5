// A trained model with all that is needed to use it, as one file for another machine.
//
// It is a safetensors file: the run's best weights under their names, and among its metadata, besides what the weights'
// own file has (the model's config, the classes' names), all in text:
//     cosformer.bundle            "1", the version of this layout
//     cosformer.settings          the run's config.toml
//     cosformer.tokenizer_file    the run's tokenizer (data/tokenizers/tokenizer_file.h) in base64, where it has one
//     cosformer.result            the run's result.json, where it has ended
//     cosformer.bundle_sha256     SHA-256 of all other metadata and of all tensors, names and shapes included
#pragma once

#include <optional>
#include <string>

namespace cosformer::runs {

struct BundleContent {
  std::string settings;                  // TOML
  std::optional<std::string> tokenizer;  // bytes of the tokenizer's file
  std::optional<std::string> result;     // JSON
};

// Writes aside and renames. Throws UserError when the weights cannot be read, or `path` is a file that is no bundle.
void write_bundle(const std::string& path, const std::string& weights, const BundleContent& content);

// Whether the path is a file instead of a run's folder. Whether it is a bundle is found by reading it.
bool is_file(const std::string& path);

// Throws UserError when the file is no bundle, is one of another version, or is not as it was written; with
// `check_all` every byte of it is read for that.
BundleContent read_bundle(const std::string& path, bool check_all = true);

}  // namespace cosformer::runs
