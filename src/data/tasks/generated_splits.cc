#include "data/tasks/generated_splits.h"

#include <filesystem>
#include <system_error>

#include <fmt/core.h>

#include "base/error.h"
#include "data/dataset/dataset_file.h"

namespace cosformer::data {
namespace {

std::shared_ptr<const ArrayDataset> open_of_provenance(const std::string& path, const std::string& provenance) {
  auto dataset = open_dataset(path);
  if (dataset->info().provenance != provenance) {
    throw UserError(
        fmt::format("'{}' was generated with other options: {}; expected {}. Choose another folder or remove the file",
                    path, dataset->info().provenance, provenance));
  }
  return dataset;
}

}  // namespace

Splits open_or_generate(const std::string& folder, const std::string& name, const std::string& provenance,
                        const std::function<Splits()>& generate) {
  const std::string stem = folder + "/" + name;
  const std::string train = stem + "-train.data", valid = stem + "-valid.data", test = stem + "-test.data";
  std::error_code error;
  bool complete = true;
  for (const std::string& path : {train, valid, test}) {
    if (std::filesystem::exists(path, error)) {
      open_of_provenance(path, provenance);
    } else {
      complete = false;
    }
  }
  if (!complete) {
    std::filesystem::create_directories(folder, error);
    if (error) throw Failure(fmt::format("cannot create the folder '{}': {}", folder, error.message()));
    const Splits splits = generate();
    write_dataset(train, *splits.train);
    write_dataset(valid, *splits.valid);
    write_dataset(test, *splits.test);
  }
  return {open_of_provenance(train, provenance), open_of_provenance(valid, provenance),
          open_of_provenance(test, provenance)};
}

}  // namespace cosformer::data
