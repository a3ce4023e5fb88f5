#include "runs/data_record.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/files/atomic_file.h"
#include "data/readers/file_content.h"

namespace cosformer::runs {
namespace {

using Json = nlohmann::ordered_json;

std::string path_in(const std::string& run) {
  return (std::filesystem::path(run) / "data.json").string();
}

}  // namespace

DataRecord data_record_of(const data::TaskData& task) {
  return {task.description, task.notes, data::class_counts(task)};
}

void keep_data_record(const std::string& run, const DataRecord& record) {
  const std::string path = path_in(run);
  if (std::filesystem::exists(path)) return;
  Json json{{"description", record.description}, {"notes", record.notes}, {"classes", Json::array()}};
  for (const data::ClassCount& c : record.classes) {
    json["classes"].push_back({{"name", c.name}, {"training", c.train}, {"validation", c.valid}, {"test", c.test}});
  }
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

DataRecord data_record_of_run(const std::string& run) {
  DataRecord record;
  const std::string path = path_in(run);
  if (!data::is_file(path)) return record;
  try {
    const Json json = Json::parse(data::read_content(path));
    record.description = json.at("description").get<std::string>();
    record.notes = json.at("notes").get<std::vector<std::string>>();
    for (const Json& entry : json.at("classes")) {
      record.classes.push_back({entry.at("name").get<std::string>(), entry.at("training").get<std::size_t>(),
                                entry.at("validation").get<std::size_t>(), entry.at("test").get<std::size_t>()});
    }
  } catch (const Json::exception&) {
    return {};
  }
  return record;
}

}  // namespace cosformer::runs
