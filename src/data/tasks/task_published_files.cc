// The tasks of the Long Range Arena and Fashion-MNIST, found by the names under which they are published or generated.
#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include <fmt/core.h>

#include "base/error.h"
#include "data/dataset/dataset_file.h"
#include "data/readers/file_content.h"
#include "data/readers/images/image_readers.h"
#include "data/tasks/listops/listops_generator.h"
#include "data/tasks/listops/listops_tsv.h"
#include "data/tasks/pathfinder/pathfinder_generator.h"
#include "data/tasks/same_article.h"
#include "data/tasks/task_parts.h"

namespace cosformer::data {
namespace {

// The first of the files that is there, gzip or not; empty when none is.
std::string first_there(const std::string& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    for (const char* ending : {"", ".gz"}) {
      std::string path = folder + "/" + name + ending;
      if (is_file(path)) return path;
    }
  }
  return "";
}

std::size_t or_else(std::int64_t asked, std::size_t otherwise) {
  return asked > 0 ? static_cast<std::size_t>(asked) : otherwise;
}

bool sizes_asked(const DataConfig& config) {
  return config.generate_train > 0 || config.generate_valid > 0 || config.generate_test > 0 ||
         config.generate_seed > 0 || config.generate_longer_than > 0 || config.generate_shorter_than > 0;
}

// Files that `cosformer data` made, whatever its options were: unless the settings say what they should hold.
bool open_generated(const DataConfig& config, const std::string& folder, const std::string& name, TaskParts& parts) {
  if (sizes_asked(config)) return false;
  const auto path = [&](const char* part) { return folder + "/" + name + "-" + part + ".data"; };
  for (const char* part : {"train", "valid", "test"}) {
    if (!is_file(path(part))) return false;
  }
  parts.train = open_dataset(path("train"));
  parts.valid = open_dataset(path("valid"));
  parts.test = open_dataset(path("test"));
  parts.source = fmt::format("generated, in '{}'", folder);
  return true;
}

template <typename Options>
void set_sizes(const DataConfig& config, Options& options) {
  options.seed = static_cast<std::uint64_t>(config.generate_seed);
  options.train = or_else(config.generate_train, options.train);
  options.valid = or_else(config.generate_valid, options.valid);
  options.test = or_else(config.generate_test, options.test);
}

void take_splits(Splits splits, const std::string& folder, TaskParts& parts) {
  parts.train = std::move(splits.train);
  parts.valid = std::move(splits.valid);
  parts.test = std::move(splits.test);
  parts.source = fmt::format("generated, in '{}'", folder);
}

ImdbOptions text_reading(const DataConfig& config) {
  return {static_cast<std::size_t>(effective_max_length(config)), {config.skip_bad_rows}};
}

}  // namespace

TaskParts open_listops(const DataConfig& config, const Progress& progress) {
  TaskParts parts;
  const std::string folder = path_of(config);
  if (open_generated(config, folder, "listops", parts)) return parts;
  const std::string train = first_there(folder, {"basic_train.tsv"}),
                    valid = first_there(folder, {"basic_val.tsv", "basic_valid.tsv"}),
                    test = first_there(folder, {"basic_test.tsv"});
  if (!train.empty() && !test.empty() && !sizes_asked(config)) {
    const RowPolicy rows{config.skip_bad_rows};
    parts.train = parts.take(load_listops_tsv(train, rows));
    if (!valid.empty()) parts.valid = parts.take(load_listops_tsv(valid, rows));
    parts.test = parts.take(load_listops_tsv(test, rows));
    parts.source = fmt::format("TSV files in '{}'", folder);
    return parts;
  }
  ListOpsOptions options;
  set_sizes(config, options);
  if (config.generate_longer_than > 0) options.longer_than = config.generate_longer_than;
  if (config.generate_shorter_than > 0) options.shorter_than = config.generate_shorter_than;
  take_splits(open_or_generate_listops(folder, options, progress), folder, parts);
  return parts;
}

TaskParts open_text(const DataConfig& config, const Progress&) {
  TaskParts parts;
  const ImdbOptions options = text_reading(config);
  std::string path = path_of(config);
  if (is_folder(path + "/aclImdb")) path += "/aclImdb";
  if (is_folder(path + "/train/neg")) {
    parts.train = parts.take(load_imdb_folder(path, ImdbPart::kTrain, options));
    parts.test = parts.take(load_imdb_folder(path, ImdbPart::kTest, options));
  } else {
    const bool file = is_file(path);
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    const std::string folder = !file ? path : parent.empty() ? "." : parent.string();
    const std::string train = file ? path : first_there(folder, {"train.tsv"});
    const std::string test = config.test_path.empty() ? first_there(folder, {"test.tsv"}) : config.test_path;
    if (train.empty() || test.empty()) refuse_missing(config, path);
    parts.train = parts.take(load_imdb_tsv(train, options));
    parts.test = parts.take(load_imdb_tsv(test, options));
    if (!config.valid_path.empty()) parts.valid = parts.take(load_imdb_tsv(config.valid_path, options));
  }
  if (config.lra_quirks) {
    parts.valid = parts.test;
    parts.valid_is_test = true;
    parts.notes.push_back(
        "data.lra_quirks: the validation part is the test part, so choosing by it flatters the result");
  }
  parts.source = fmt::format("IMDb reviews as bytes, from '{}'", path);
  return parts;
}

namespace {

TaskParts open_same_article(const DataConfig& config) {
  const std::string path = path_of(config);
  if (!is_file(path)) {
    throw UserError(
        fmt::format("cannot find articles at '{}'. With data.retrieval_source=same_article, data.path is a text file "
                    "of articles separated by blank lines, gzip or not",
                    path));
  }
  SameArticleOptions options;
  set_sizes(config, options);
  options.most_length = static_cast<std::size_t>(effective_max_length(config));
  options.least_length = or_else(config.passage_least, std::max<std::size_t>(options.most_length / 4, 1));
  options.valid_fraction = config.valid_fraction;
  options.test_fraction = config.test_fraction;
  const SameArticleSplits splits = load_same_article(path, options);
  TaskParts parts;
  parts.train = splits.train;
  parts.valid = splits.valid;
  parts.test = splits.test;
  parts.source = fmt::format("passages of one article or of two (a stand-in for AAN), from {} articles in '{}'",
                             splits.articles, path);
  parts.notes.push_back("pairs of passages stand in for AAN's pairs: numbers do not compare with published ones");
  return parts;
}

}  // namespace

TaskParts open_retrieval(const DataConfig& config, const Progress&) {
  if (config.retrieval_source == "same_article") return open_same_article(config);
  if (config.retrieval_source != "aan") {
    throw UserError(
        fmt::format("data.retrieval_source is {}; expected aan or same_article", excerpt(config.retrieval_source)));
  }
  const std::string folder = path_of(config);
  const std::string train = first_there(folder, {"new_aan_pairs.train.tsv"}),
                    valid = first_there(folder, {"new_aan_pairs.eval.tsv"}),
                    test = first_there(folder, {"new_aan_pairs.test.tsv"});
  if (train.empty() || valid.empty() || test.empty()) refuse_missing(config, folder);
  TaskParts parts;
  const ImdbOptions options = text_reading(config);
  parts.train = parts.take(load_aan(train, options));
  parts.valid = parts.take(load_aan(valid, options));
  parts.test = parts.take(load_aan(test, options));
  parts.source = fmt::format("AAN pairs in '{}'", folder);
  return parts;
}

TaskParts open_image(const DataConfig& config, const Progress&) {
  TaskParts parts;
  CifarOptions options;
  options.rows.skip_bad_rows = config.skip_bad_rows;
  std::string path = path_of(config);
  if (is_folder(path + "/cifar-10-batches-bin")) path += "/cifar-10-batches-bin";
  parts.source = fmt::format("CIFAR-10 as gray pixels, from '{}'", path);
  std::vector<std::string> batches;
  for (const char* name :
       {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"}) {
    if (std::string batch = first_there(path, {name}); !batch.empty()) batches.push_back(std::move(batch));
  }
  if (!batches.empty()) {
    const std::string test = first_there(path, {"test_batch.bin"});
    if (batches.size() != 5 || test.empty()) refuse_missing(config, path);
    parts.train = parts.take(load_cifar10(batches, options));
    parts.test = parts.take(load_cifar10({test}, options));
    return parts;
  }
  if (is_folder(path)) {
    const std::vector<std::string> files = names_in_folder(path, ".bin");
    if (files.size() != 1) refuse_missing(config, path);
    path += "/" + files.front();
  }
  if (!is_file(path)) refuse_missing(config, path);
  const DatasetPointer all = parts.take(load_cifar10({path}, options));
  if (!config.test_path.empty()) {
    parts.train = all;
    parts.test = parts.take(load_cifar10({config.test_path}, options));
    return parts;
  }
  const std::size_t test = all->size() / 6;  // 10,000 of 60,000
  if (test == 0) throw UserError(fmt::format("'{}' has {} images; expected at least 6", path, all->size()));
  parts.train = slice(all, 0, all->size() - test);
  parts.test = slice(all, all->size() - test, all->size());
  return parts;
}

TaskParts open_pathfinder(const DataConfig& config, const Progress& progress) {
  TaskParts parts;
  const std::string folder = path_of(config);
  const std::string name = "pathfinder" + std::to_string(config.image_size);
  if (open_generated(config, folder, name, parts)) return parts;
  for (const std::string& root : {folder, folder + "/curv_contour_length_14"}) {
    if (!is_folder(root + "/metadata") || sizes_asked(config)) continue;
    const DatasetPointer all = parts.take(load_pathfinder_folder(root, {config.skip_bad_rows}));
    const std::size_t size = all->size(), train = size * 8 / 10, valid = size / 10;
    if (valid == 0) throw UserError(fmt::format("'{}' has {} images; expected at least 10", root, size));
    parts.train = slice(all, 0, train);
    parts.valid = slice(all, train, train + valid);
    parts.test = slice(all, train + valid, size);
    parts.source = fmt::format("the published images in '{}'", root);
    return parts;
  }
  PathfinderOptions options = published_pathfinder(static_cast<int>(config.image_size));
  set_sizes(config, options);
  take_splits(open_or_generate_pathfinder(folder, options, progress), folder, parts);
  return parts;
}

TaskParts open_fashion_mnist(const DataConfig& config, const Progress&) {
  const std::string folder = path_of(config);
  for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                           "t10k-labels-idx1-ubyte.gz"}) {
    if (!is_file(folder + "/" + name)) refuse_missing(config, folder + "/" + name);
  }
  TaskParts parts;
  parts.train = parts.take(load_fashion_mnist(MnistPart::kTrain, folder));
  parts.test = parts.take(load_fashion_mnist(MnistPart::kTest, folder));
  parts.source = fmt::format("the images in '{}'", folder);
  return parts;
}

}  // namespace cosformer::data
