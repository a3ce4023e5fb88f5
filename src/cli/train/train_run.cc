#include "cli/train/train_run.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>

#include <ATen/Parallel.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/progress.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/memory/allocation_peak.h"
#include "cli/memory/memory.h"
#include "runs/device.h"
#include "runs/trained_data.h"

namespace cosformer::cli {

RunLog::RunLog(const std::string& run) : file_((std::filesystem::path(run) / "log.txt").string()) {}

void RunLog::write(const std::string& line) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> stamp{};
  std::strftime(stamp.data(), stamp.size(), "%Y-%m-%dT%H:%M:%SZ ", &parts);
  file_.append(stamp.data() + line + "\n");
  std::printf("%s\n", line.c_str());
}

void RunLog::write_note(const std::string& note) {
  if (!note.empty()) write("note: " + note);
}

train::TrainResult run_job(const train::TrainRequest& request, train::Job& job, RunLog& log) {
  log.write("run folder: " + request.run);
  if (request.data_moved) {
    if (runs::is_trained_on(request.run, job.data_name()) == runs::SameData::kNo) {
      throw UserError(
          fmt::format("'{}' does not hold the data that '{}' was trained on; --resume goes on with the same data",
                      request.config.data.path, request.run));
    }
    runs::move_data(request.run, request.config.data.path);
    log.write(fmt::format("the data are at '{}' from now on", request.config.data.path));
  }
  std::unique_ptr<Progress> line;
  std::optional<double> time_left;
  train::Observer observer;
  observer.say = [&](const std::string& text) {
    if (line) line->clear();
    log.write(text);
  };
  observer.step = [&](const runs::TrainState& state, double loss, double rate) {
    if (!line) line = std::make_unique<Progress>("train", state.total_steps, "steps", state.step - 1);
    std::string note = std::isnan(loss) ? "" : "loss " + significant(loss, 4);
    if (state.best) note += "  best " + job.describe_best(*state.best);
    if (rate > 0) note += fmt::format("  {} tokens/s", with_commas(std::llround(rate)));
    line->note(note);
    if (time_left) line->expect(*time_left);
    line->advance();
  };
  observer.time_left = [&](double seconds) { time_left = seconds; };
  const at::Device device = runs::device_of(request.config.train);
  // All that is left to the CPU beside a GPU is to copy batches; torch's threads would only wait for the next one, each
  // on a core that others could use.
  if (device.is_cuda() && std::getenv("OMP_NUM_THREADS") == nullptr) at::set_num_threads(1);
  const AllocationPeak peak(device);
  observer.peak_memory = [&] { return peak.bytes(); };
  observer.peak_resident = most_resident_bytes;
  train::TrainResult result = train::train(request, job, observer);
  line.reset();
  if (result.ending == train::Ending::kInterrupted) {
    log.write(fmt::format("stopped at step {}; go on with: cosformer train --resume {}", with_commas(result.state.step),
                          request.run));
    throw Interrupted{};
  }
  if (result.ending == train::Ending::kStoppedEarly) log.write("stopped early: no better evaluation for a while");
  log.write(
      fmt::format("trained {} steps in {}, {} tokens/s while training, at most {} of tensors; the process had {} in "
                  "the machine's memory",
                  with_commas(result.state.step), human_seconds(result.state.seconds),
                  with_commas(std::llround(result.tokens_per_second)), human_bytes(result.peak_memory),
                  human_bytes(result.peak_resident)));
  return result;
}

}  // namespace cosformer::cli
