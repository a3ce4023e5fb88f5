#include "serve/http/served_model.h"

#include <chrono>
#include <filesystem>

#include <fmt/core.h>

#include "base/error.h"
#include "models/config.h"
#include "runs/device.h"
#include "runs/language_run.h"
#include "serve/masked_filler.h"

namespace cosformer::serve {

namespace fs = std::filesystem;

std::string name_of_run(const std::string& run) {
  const fs::path path = fs::path(run).lexically_normal();
  fs::path name = path.filename().empty() ? path.parent_path().filename() : path.filename();
  if (name.extension() == ".bundle" || name.extension() == ".safetensors") name = name.stem();
  if (name.empty() || name == "." || name == "..") {
    throw UserError(fmt::format("'{}' gives a model no name; name the run's folder as runs/NAME", run));
  }
  return name.string();
}

std::int64_t time_of_run(const std::string& run) {
  std::error_code unknown;
  const auto written = fs::last_write_time(run, unknown);
  if (unknown) return 0;
  const auto ago = fs::file_time_type::clock::now() - written;
  const auto then = std::chrono::system_clock::now() - std::chrono::duration_cast<std::chrono::seconds>(ago);
  return std::chrono::duration_cast<std::chrono::seconds>(then.time_since_epoch()).count();
}

std::unique_ptr<ServedModel> open_served_model(const std::string& run, const ServedModelOptions& options) {
  auto served = std::make_unique<ServedModel>();
  served->id = name_of_run(run);
  served->created = time_of_run(run);
  const runs::LanguageRun opened = runs::open_language_run(run);
  runs::TrainConfig where;
  where.device = options.device;
  opened.model->to(runs::device_of(where));
  const models::ModelConfig& config = opened.model->config().model;
  served->kind = "lm";
  served->attention = models::label_of(config);
  served->parameters = opened.model->parameter_count();
  served->vocabulary = config.input.vocabulary;
  served->tokenizer = opened.tokenizer;
  served->tokenizer_kind = opened.tokenizer->kind_name();
  if (!config.causal) {
    served->kind = "mlm";
    served->context_length = config.input.max_length;
    served->filler = masked_filler(opened.model, opened.tokenizer);
    return served;
  }
  served->softmax_cache_bytes_per_token = static_cast<std::uint64_t>(config.layers * config.width) * 2 * sizeof(float);
  EngineOptions engine = options.engine;
  engine.memory = options.memory / 2;
  served->context_length = opened.model->longest_stream();
  Generator generator(opened.model, opened.tokenizer);
  served->state_bytes = generator.begin(0).state.bytes();
  served->engine = std::make_unique<Engine>(std::move(generator), engine);
  SessionStoreOptions sessions;
  sessions.memory = options.memory / 2;
  if (!options.sessions_folder.empty()) sessions.folder = (fs::path(options.sessions_folder) / served->id).string();
  served->sessions = std::make_unique<SessionStore>(served->engine->generator(), sessions);
  return served;
}

}  // namespace cosformer::serve
