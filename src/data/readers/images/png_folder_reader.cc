// load_png_folder.
#include <algorithm>

#include "base/error.h"
#include "data/readers/file_content.h"
#include "data/readers/images/image_readers.h"
#include "data/readers/images/image_sequence.h"

namespace cosformer::data {

Loaded load_png_folder(const std::string& folder, const PngFolderOptions& options) {
  const std::vector<std::string> found = folders_in_folder(folder);
  const std::vector<std::string> classes = options.classes.empty() ? found : options.classes;
  DatasetBuilder builder(ElementType::kU8);
  RowReporter reporter(options.rows);
  PngCollector images(builder, reporter);
  for (const std::string& name : found) {
    const auto position = std::find(classes.begin(), classes.end(), name);
    if (position == classes.end()) {
      reporter.bad_file(folder + "/" + name, "the folder is not named after one of the classes");
      continue;
    }
    const std::string class_folder = folder + "/" + name;
    for (const std::string& file : names_in_folder(class_folder, ".png")) {
      images.add(class_folder + "/" + file, static_cast<std::int32_t>(position - classes.begin()));
    }
  }
  return reporter.finish(folder, builder, describe_images(options.name, images.width(), images.height(), classes));
}

}  // namespace cosformer::data
