#include "train/jobs/language_job.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"
#include "data/dataset/fingerprint.h"
#include "models/language/language_model_file.h"
#include "models/layer_pattern.h"
#include "runs/device.h"
#include "train/inputs/batching.h"
#include "train/training_step.h"

namespace cosformer::train {
namespace {

std::int64_t rows_of(const runs::RunConfig& config) {
  return rows_of_width(config.train, config.text.window);
}

std::int64_t evaluated_rows(const runs::RunConfig& config) {
  return config.train.eval_batch_size > 0 ? config.train.eval_batch_size : rows_of(config);
}

void require_carry_possible(const runs::RunConfig& config, const models::LanguageModel& model) {
  if (config.data.task != "lm") throw UserError("settings: data.carry needs the task lm: a masked model has no state");
  if (config.text.documents_apart) {
    throw UserError("settings: data.carry reads one stream of text; set data.documents_apart=false");
  }
  const std::int64_t longest = model.config().model.input.max_length;
  if (longest < 2 * config.text.window) {
    throw UserError(fmt::format(
        "settings: data.carry needs data.max_length ({}) of at least two windows of data.window ({}) tokens", longest,
        config.text.window));
  }
  model.empty_state(1);  // throws where there is none
}

// Windows over which a state goes, before it is begun anew.
std::int64_t windows_of_a_state(const runs::RunConfig& config, const models::LanguageModel& model) {
  return std::max<std::int64_t>(model.config().model.input.max_length / config.text.window, 1);
}

std::shared_ptr<models::LanguageModel> make_model(const runs::RunConfig& config, const data::Tokenizer& tokenizer,
                                                  at::Device device) {
  const models::LanguageModelConfig model = language_model_config(config, tokenizer);
  at::manual_seed(step_seed(config.train.seed, 0));
  auto result = std::make_shared<models::LanguageModel>(model);
  result->to(device);
  result->train();
  return result;
}

}  // namespace

models::LanguageModelConfig language_model_config(const runs::RunConfig& config, const data::Tokenizer& tokenizer) {
  models::LanguageModelConfig model;
  model.model = config.model;
  model.model.causal = config.data.task == "lm";
  model.model.input = {};
  model.model.input.vocabulary = tokenizer.vocabulary();
  model.model.input.max_length = config.data.max_length > 0 ? config.data.max_length : config.text.window;
  if (model.model.input.max_length < config.text.window) {
    throw UserError(fmt::format("settings: data.max_length ({}) must not be below data.window ({})",
                                config.data.max_length, config.text.window));
  }
  model.language = config.language;
  model.tokenizer = tokenizer.hash();
  return model;
}

LanguageEvaluationOptions language_evaluation_options(const runs::RunConfig& config, const models::LanguageModel& model,
                                                      at::Device device) {
  LanguageEvaluationOptions options;
  options.device = device;
  options.bfloat16 = runs::uses_bfloat16(config.train, device);
  options.rows = evaluated_rows(config);
  options.window = config.text.window;
  options.documents_apart = config.text.documents_apart;
  // Where a model can look back farther than a window, its state is carried as far.
  const std::int64_t windows = windows_of_a_state(config, model);
  if (config.data.task == "lm" && windows > 1 && !config.text.documents_apart) {
    options.carry = windows * config.text.window;
  }
  return options;
}

LanguageJob::LanguageJob(const runs::RunConfig& config, const LanguageData& data)
    : config_(config),
      corpus_(data.corpus),
      device_(runs::device_of(config.train)),
      model_(make_model(config, *corpus_.tokenizer, device_)) {
  if (config.train.label_smoothing > 0) {
    throw UserError("settings: train.label_smoothing is for classification; set it to 0 for language models");
  }
  if (config.text.carry) require_carry_possible(config, *model_);
  if (corpus_.valid.tokens() == 0) {
    throw UserError("there is no validation text; set data.valid_path, or data.valid_fraction above 0");
  }
  const data::LmOptions options{rows_of(config), config.text.window, config.text.documents_apart};
  const auto seed = static_cast<std::uint64_t>(config.train.seed);
  batches_ = config.text.carry ? data::lanes(corpus_.train, corpus_.tokenizer, options, seed)
                               : data::random_windows(corpus_.train, corpus_.tokenizer, options, seed);
}

std::string LanguageJob::label() const {
  return models::label_of(model_->config().model);
}

std::string LanguageJob::data_name() const {
  return data::fingerprint(corpus_);
}

std::string LanguageJob::model_config() const {
  return to_toml(model_->config());
}

std::map<std::string, std::string> LanguageJob::metadata() const {
  return models::language_model_metadata(model_->config());
}

// With documents kept apart their number, with a carried state what it holds differ from batch to batch.
bool LanguageJob::is_always_the_same() const {
  return !config_.text.documents_apart && !config_.text.carry && !model_->losses_wait() &&
         !models::changes_while_training(model_->config().model);
}

void LanguageJob::begin(data::StreamPosition position, bool) {
  batches_->require_position(position);
  position_ = first_ = position;
}

std::uint64_t LanguageJob::batches_in_first_epoch() const {
  return batches_->batches(first_.epoch);
}

JobBatch LanguageJob::next() {
  const data::LmBatch batch = batches_->at(position_);
  JobBatch result;
  if (is_masked()) {
    data::MaskOptions masks;
    masks.rate = config_.text.mask_rate;
    result.inputs = masked_inputs(batch, *corpus_.tokenizer, masks, static_cast<std::uint64_t>(config_.train.seed),
                                  config_.text.documents_apart, device_);
  } else {
    LanguageInputs inputs = language_inputs(batch, config_.text.documents_apart, device_);
    const auto windows = static_cast<std::uint64_t>(windows_of_a_state(config_, *model_));
    inputs.begins_state = config_.text.carry && batch.position.batch % windows == 0;
    result.inputs = std::move(inputs);
  }
  result.position = batch.position;
  result.next = position_ = batch.next;
  result.tokens = batch.predictions;
  result.places = batch.starts;
  return result;
}

std::string LanguageJob::name_places(const std::vector<std::uint64_t>& places) const {
  return "the windows of the training text that begin at its tokens " + listed(places);
}

at::Tensor LanguageJob::masked_loss(const StepInputs& step) {
  const auto& inputs = std::get<MaskedInputs>(step);
  const at::Tensor losses = model_->losses(masked_hidden(*model_, inputs), inputs.targets);
  return losses.sum() / inputs.targets.ne(data::kNoTarget).sum().clamp_min(1);
}

at::Tensor LanguageJob::carried_loss(const LanguageInputs& inputs) {
  const at::Tensor loss = model_->stream_loss(inputs.tokens, inputs.targets, state_).mean();
  state_.detach();
  ++windows_behind_;
  return loss;
}

at::Tensor LanguageJob::loss(const StepInputs& step) {
  if (is_masked()) return masked_loss(step);
  const auto& inputs = std::get<LanguageInputs>(step);
  if (!config_.text.carry) return model_->loss(inputs.tokens, inputs.targets, inputs.cu_seqlens).mean();
  if (inputs.begins_state) {
    state_ = model_->empty_state(inputs.tokens.size(0));
    windows_behind_ = 0;
  }
  return carried_loss(inputs);
}

nn::NamedTensors LanguageJob::carried() const {
  if (!config_.text.carry || windows_behind_ == 0) return {};
  nn::NamedTensors tensors = state_.tensors();
  tensors.emplace_back("windows", at::scalar_tensor(windows_behind_, at::kLong));
  return tensors;
}

void LanguageJob::restore_carried(const nn::NamedTensors& carried) {
  if (!config_.text.carry || carried.empty()) return;
  const std::int64_t rows = rows_of(config_);
  state_ = model_->empty_state(rows);
  const auto find = [&](const std::string& name) -> const at::Tensor& {
    for (const auto& [key, tensor] : carried) {
      if (key == name) return tensor;
    }
    throw UserError(fmt::format("the checkpoint lacks '{}' of the carried state; were the settings changed?", name));
  };
  const auto refuse = [](const std::string& name) {
    return UserError(
        fmt::format("the checkpoint's '{}' of the carried state does not fit: it is damaged, or of other settings; go "
                    "on from an earlier checkpoint with --from",
                    name));
  };
  const at::Tensor& windows = find("windows");
  if (windows.dim() != 0 || windows.scalar_type() != at::kLong) throw refuse("windows");
  windows_behind_ = windows.item<std::int64_t>();
  if (windows_behind_ < 1 || windows_behind_ > windows_of_a_state(config_, *model_)) throw refuse("windows");
  const std::int64_t consumed = windows_behind_ * config_.text.window;
  state_.replace([&](const std::string& name, const at::Tensor& like) {
    const at::Tensor& there = find(name);
    std::vector<std::int64_t> shape = like.sizes().vec();
    if (models::LmState::is_cache(like)) shape[2] = consumed;
    if (there.sizes() != at::IntArrayRef(shape) || there.scalar_type() != like.scalar_type()) throw refuse(name);
    return there.to(device_);
  });
  state_.clock = nn::StreamClock(rows, device_, consumed);
}

const data::CorpusPart& LanguageJob::part_of(Part part) const {
  return part == Part::kTrain ? corpus_.train : part == Part::kValid ? corpus_.valid : corpus_.test;
}

double LanguageJob::work_of_evaluation(Part part) const {
  return kWorkOfReading * static_cast<double>(part_of(part).tokens());
}

PartResult LanguageJob::evaluate(Part part, const StopRequest& stop) {
  LanguageEvaluationOptions options = language_evaluation_options(config_, *model_, device_);
  options.stop = stop;
  if (!is_masked()) return part_result(evaluate_language(*model_, part_of(part), corpus_.tokenizer, options));
  data::MaskOptions masks;
  masks.rate = config_.text.mask_rate;
  return part_result(evaluate_masked(*model_, part_of(part), corpus_.tokenizer, masks, options));
}

std::string LanguageJob::describe(const PartResult& result) const {
  if (is_masked()) {
    return fmt::format("loss {}, {}% of masked tokens found", significant(result.at("loss"), 4),
                       significant(100 * result.at("masked_accuracy"), 4));
  }
  return fmt::format("loss {}, perplexity {}, bits per byte {}", significant(result.at("loss"), 4),
                     significant(result.at("perplexity"), 4), significant(result.at("bits_per_byte"), 4));
}

std::string LanguageJob::describe_best(double value) const {
  return "loss " + significant(value, 4);
}

}  // namespace cosformer::train
