#include "runs/checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/files/file_descriptor.h"
#include "base/files/regular_file.h"
#include "base/formats/json_text.h"

namespace cosformer::runs {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::array kTensorFiles{"model.safetensors", "optimizer.safetensors"};
constexpr const char* kCarriedFile = "carried.safetensors";
constexpr const char* kDescription = "checkpoint.json";
constexpr const char* kPartial = ".partial";  // a checkpoint that comes
constexpr const char* kRemoved = ".removed";  // one that goes
constexpr std::size_t kKept = 2;
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
constexpr std::int64_t kMostCounted = std::int64_t{1} << 53;

fs::path folder_of(const std::string& run) {
  return fs::path(run) / "checkpoints";
}

std::uint32_t checksum_of_file(const fs::path& path) {
  const RegularFile file(path.string());
  std::vector<char> block(1 << 20);
  uLong checksum = crc32(0, nullptr, 0);
  for (std::uint64_t at = 0; at < file.size(); at += block.size()) {
    const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), file.size() - at));
    file.read(at, block.data(), size);
    checksum = crc32(checksum, reinterpret_cast<const Bytef*>(block.data()), static_cast<uInt>(size));
  }
  return static_cast<std::uint32_t>(checksum);
}

std::uint32_t checksum_of_text(const std::string& text) {
  return static_cast<std::uint32_t>(
      crc32(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

json to_json(const TrainState& s) {
  return {{"step", s.step},
          {"total_steps", s.total_steps},
          {"epoch", s.position.epoch},
          {"batch", s.position.batch},
          {"best", s.best ? json(*s.best) : json()},
          {"best_loss", s.best_loss ? json(*s.best_loss) : json()},
          {"evaluation_is_due", s.evaluation_is_due},
          {"best_step", s.best_step},
          {"evaluations_since_best", s.evaluations_since_best},
          {"seconds", s.seconds},
          {"training_seconds", s.training_seconds},
          {"tokens", s.tokens},
          {"pending_losses", s.pending_losses},
          {"rate", s.rate},
          {"continued_at", s.continued_at},
          {"rate_before", s.rate_before},
          {"data", s.data_name}};
}

// Every number is looked at before work begins: none can be so large that counting on from it overflows.
TrainState state_from(const json& j, const std::string& name) {
  const auto whole = [&](const char* key) {
    if (!j.contains(key)) throw UserError(fmt::format("'{}' is not as it was written: '{}' is missing", name, key));
    return json_whole(j, key, 0, name, 0, kMostCounted);
  };
  const auto number = [&](const char* key) {
    if (!j.contains(key)) throw UserError(fmt::format("'{}' is not as it was written: '{}' is missing", name, key));
    return json_number(j, key, 0, name);
  };
  TrainState s;
  s.step = whole("step");
  s.total_steps = whole("total_steps");
  if (s.step > s.total_steps)
    throw UserError(fmt::format("'{}' is not as it was written: it is past its last step", name));
  s.position.epoch = static_cast<std::uint64_t>(whole("epoch"));
  s.position.batch = static_cast<std::uint64_t>(whole("batch"));
  if (j.contains("best_accuracy")) {  // as it was called while accuracy was the only one
    if (number("best_accuracy") >= 0) s.best = number("best_accuracy");
  } else if (const double best = number("best"); !std::isnan(best)) {
    s.best = best;
  }
  if (const double loss = json_number(j, "best_loss", std::nan(""), name); !std::isnan(loss)) s.best_loss = loss;
  s.evaluation_is_due = j.value("evaluation_is_due", false);
  s.best_step = whole("best_step");
  s.evaluations_since_best = whole("evaluations_since_best");
  s.seconds = number("seconds");
  s.training_seconds = number("training_seconds");
  s.tokens = whole("tokens");
  j.at("pending_losses").get_to(s.pending_losses);
  s.rate = json_number(j, "rate", s.rate, name);
  s.rate_before = json_number(j, "rate_before", s.rate_before, name);
  s.continued_at = j.value("continued_at", s.continued_at);
  for (const std::int64_t at : s.continued_at) {
    if (at < 0 || at > s.step) throw UserError(fmt::format("'{}' is not as it was written: 'continued_at'", name));
  }
  s.data_name = json_string(j, "data", "", name);
  return s;
}

void sync_folder(const fs::path& path) {
  const FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open() || ::fsync(folder.number()) != 0) throw file_failure("bring to the disk", path.string(), errno);
}

// {"state": …, "files": …}. Throws UserError when it is not as it was written.
json body_of(const fs::path& path) {
  const std::string name = (path / kDescription).string();
  const json description = parse_json(read_regular_file(name, kMostBytes, "a checkpoint's description"), name);
  const json& body = description.at("checkpoint");
  if (description.at("crc32").get<std::uint32_t>() != checksum_of_text(body.dump())) {
    throw UserError(std::string(kDescription) + " is not as it was written (its checksum differs)");
  }
  return body;
}

// What is wrong with a checkpoint; empty when nothing is. `state` is filled in the latter case.
std::string damage(const fs::path& path, TrainState& state) {
  try {
    const json body = body_of(path);
    for (const char* name : kTensorFiles) body.at("files").at(name);
    for (const auto& [file, checksum] : body.at("files").items()) {
      if (std::count(kTensorFiles.begin(), kTensorFiles.end(), file) == 0 && file != kCarriedFile) {
        return std::string(kDescription) + " names a file that no checkpoint has";
      }
      if (checksum.get<std::uint32_t>() != checksum_of_file(path / file)) {
        return file + " is not as it was written (its checksum differs)";
      }
    }
    state = state_from(body.at("state"), (path / kDescription).string());
  } catch (const json::exception&) {
    return std::string(kDescription) + " is torn or was changed";
  } catch (const std::runtime_error& error) {  // a UserError or a Failure
    return error.what();
  }
  return "";
}

// Not fs::remove_all: some libtorch builds carry another version of its recursion under the same names, and crash.
void remove_folder(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) files.push_back(entry.path());
  for (const fs::path& file : files) fs::remove(file, ignored);
  fs::remove(folder, ignored);
}

// A checkpoint is there whole or not at all, also while it goes: it is renamed first.
void remove_checkpoint(const std::string& run, std::int64_t step) {
  const fs::path going = folder_of(run) / kRemoved;
  remove_folder(going);
  std::error_code error;
  fs::rename(checkpoint_path(run, step), going, error);
  if (!error) remove_folder(going);
}

void remove_old(const std::string& run) {
  std::vector<std::int64_t> steps = checkpoint_steps(run);
  for (std::size_t at = 0; at + kKept < steps.size(); ++at) remove_checkpoint(run, steps[at]);
}

}  // namespace

std::string checkpoint_path(const std::string& run, std::int64_t step) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "step-%08lld", static_cast<long long>(step));
  return (folder_of(run) / name.data()).string();
}

std::vector<std::int64_t> checkpoint_steps(const std::string& run) {
  std::vector<std::int64_t> steps;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(run), ignored)) {
    const std::string name = entry.path().filename().string();
    long long step = 0;
    int used = 0;
    if (std::sscanf(name.c_str(), "step-%lld%n", &step, &used) == 1 && used == static_cast<int>(name.size()) &&
        step >= 0 && fs::path(checkpoint_path(run, step)).filename() == name) {
      steps.push_back(step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<TrainState> newest_state(const std::string& run) {
  const std::vector<std::int64_t> steps = checkpoint_steps(run);
  if (steps.empty()) return std::nullopt;
  const fs::path path = checkpoint_path(run, steps.back());
  try {
    return state_from(body_of(path).at("state"), (path / kDescription).string());
  } catch (const json::exception&) {
    return std::nullopt;
  } catch (const std::runtime_error&) {  // a UserError or a Failure: who goes on from it says what is wrong
    return std::nullopt;
  }
}

void save_checkpoint(const std::string& run, const TrainState& state, const CheckpointContent& content) {
  const fs::path target = checkpoint_path(run, state.step);
  const fs::path partial = folder_of(run) / kPartial;
  std::error_code error;
  remove_folder(partial);
  if (!fs::create_directories(partial, error)) throw file_failure("make the folder", partial.string(), error.value());
  try {
    nn::write_tensors((partial / kTensorFiles[0]).string(), content.model, {{"cosformer.model", content.model_config}});
    nn::write_tensors((partial / kTensorFiles[1]).string(), content.optimizer);
    json body{{"state", to_json(state)}, {"files", json::object()}};
    for (const char* name : kTensorFiles) body["files"][name] = checksum_of_file(partial / name);
    if (!content.carried.empty()) {
      nn::write_tensors((partial / kCarriedFile).string(), content.carried);
      body["files"][kCarriedFile] = checksum_of_file(partial / kCarriedFile);
    }
    const std::string text = json{{"checkpoint", body}, {"crc32", checksum_of_text(body.dump())}}.dump(1);
    AtomicFile file((partial / kDescription).string());
    file.write(text.data(), text.size());
    file.commit();
    remove_checkpoint(run, state.step);  // left by a run that went on from one before it and has come back here
    fs::rename(partial, target, error);
    if (error) throw file_failure("rename", partial.string(), error.value());
    sync_folder(folder_of(run));
  } catch (...) {
    remove_folder(partial);
    throw;
  }
  remove_old(run);
}

TrainState load_checkpoint(const std::string& run, std::int64_t step, const CheckpointContent& content,
                           const std::string& data_name, std::int64_t continued) {
  const std::string path = checkpoint_path(run, step);
  if (!fs::exists(path)) {
    std::string steps;
    for (const std::int64_t there : checkpoint_steps(run)) steps += (steps.empty() ? "" : ", ") + std::to_string(there);
    throw UserError(fmt::format("'{}' has no checkpoint of step {}{}", run, step,
                                steps.empty() ? "" : "; there are those of " + steps));
  }
  TrainState state;
  const std::string reason = damage(path, state);
  if (reason.empty()) {
    const bool other_data = !state.data_name.empty() && state.data_name != data_name;
    if (other_data && continued <= static_cast<std::int64_t>(state.continued_at.size())) {
      throw UserError(
          fmt::format("'{}' was trained on other data than those that are there now; put back what they were, go on "
                      "with these (cosformer train --continue {} --data ...), or begin a new run with another --out",
                      run, run));
    }
    if (!other_data) state.data_name = data_name;
    nn::read_tensors((fs::path(path) / kTensorFiles[0]).string(), content.model);
    nn::read_tensors((fs::path(path) / kTensorFiles[1]).string(), content.optimizer);
    return state;
  }
  std::string advice = "; there is no intact one before it: start a new run";
  for (const std::int64_t other : checkpoint_steps(run)) {
    TrainState unused;
    if (other < step && damage(checkpoint_path(run, other), unused).empty()) {
      advice = fmt::format("; the one of step {} is intact, go on from it with: cosformer train --resume {} --from {}",
                           other, run, other);
    }
  }
  throw UserError(fmt::format("the checkpoint '{}' is damaged: {}{}", path, reason, advice));
}

void remove_unfinished_checkpoints(const std::string& run) {
  remove_folder(folder_of(run) / kPartial);
  remove_folder(folder_of(run) / kRemoved);
  remove_old(run);
}

nn::NamedTensors load_carried(const std::string& run, std::int64_t step) {
  const fs::path path = fs::path(checkpoint_path(run, step)) / kCarriedFile;
  return fs::exists(path) ? nn::read_all_tensors(path.string()) : nn::NamedTensors{};
}

}  // namespace cosformer::runs
