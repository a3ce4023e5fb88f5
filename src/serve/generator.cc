#include "serve/generator.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/random.h"
#include "data/tokenizers/tokenizer_file.h"
#include "models/language/language_model_file.h"

namespace cosformer::serve {
namespace {

// Long enough for the chunked kernel to be at its best. On a CPU short enough that a reader delays writers beside it by
// tens of milliseconds at most; on a GPU its launches are what takes time.
constexpr std::int64_t kStretchOnCpu = 256, kStretchOnGpu = 2048;

}  // namespace

Generator::Generator(std::shared_ptr<models::LanguageModel> model, data::TokenizerPointer tokenizer)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      stretch_(model_->device().is_cuda() ? kStretchOnGpu : kStretchOnCpu) {
  const models::LanguageModelConfig& config = model_->config();
  if (!config.model.causal) {
    throw UserError(
        "a masked language model fills gaps and cannot continue a text; cosformer train --task lm makes one that can");
  }
  if (!config.tokenizer.empty()) data::require_tokenizer(*tokenizer_, config.tokenizer, "the model");
  if (tokenizer_->vocabulary() != config.model.input.vocabulary) {
    throw UserError(fmt::format("the model has a vocabulary of {} tokens and the tokenizer one of {}",
                                config.model.input.vocabulary, tokenizer_->vocabulary()));
  }
  model_->eval();
  model_->empty_state(1);
}

Session Generator::begin(std::uint64_t seed) const {
  Session session;
  session.state = model_->empty_state(1);
  session.seed = seed;
  const std::int32_t first = tokenizer_->end_of_document();
  read(session, {&first, 1});
  return session;
}

void Generator::read(Session& session, std::span<const std::int32_t> tokens,
                     const std::function<void(std::size_t)>& done) const {
  const std::optional<std::int64_t> left = room(session);
  if (left.has_value() && static_cast<std::int64_t>(tokens.size()) > *left) {
    throw UserError(fmt::format(
        "the text would have {} tokens, and the model's horizon is {}: it can neither read nor write beyond it",
        session.consumed() + static_cast<std::int64_t>(tokens.size()), *model_->longest_stream()));
  }
  for (std::size_t begin = 0; begin < tokens.size();) {
    const std::size_t count = read_stretch(session, tokens.subspan(begin));
    begin += count;
    if (done) done(count);
  }
}

std::size_t Generator::read_stretch(Session& session, std::span<const std::int32_t> tokens, at::Tensor* hidden) const {
  const at::NoGradGuard no_grad;
  const std::int64_t consumed = session.consumed();
  const std::size_t count = std::min(tokens.size(), static_cast<std::size_t>(cut_behind(consumed) - consumed));
  const at::Tensor stretch = at::tensor(at::ArrayRef<std::int32_t>(tokens.data(), count), at::kInt).unsqueeze(0);
  const at::Tensor read = model_->stream_hidden(stretch.to(model_->device()), session.state);
  if (count == tokens.size()) {
    session.logits = model_->next_logits(read.select(1, read.size(1) - 1))[0].to(at::kCPU, at::kFloat);
  }
  if (hidden != nullptr) *hidden = read[0];
  session.remember(tokens.first(count));
  return count;
}

at::Tensor Generator::read_together(const std::vector<std::int32_t>& tokens, models::LmState& state) const {
  const at::NoGradGuard no_grad;
  const at::Tensor column = at::tensor(tokens, at::kInt).unsqueeze(1).to(model_->device());
  const at::Tensor hidden = model_->stream_hidden(column, state);
  return model_->next_logits(hidden.select(1, 0)).to(at::kCPU, at::kFloat).contiguous();
}

std::int32_t Generator::chosen(const Session& session, std::int64_t consumed, const SamplingOptions& options) const {
  const std::int32_t forbidden = tokenizer_->mask();
  const at::Tensor logits = session.logits.contiguous();
  const std::vector<double> probabilities = next_token_probabilities(
      {logits.data_ptr<float>(), static_cast<std::size_t>(logits.numel())}, session.recent, {&forbidden, 1}, options);
  Random random(session.seed, RandomStream::kGeneration, static_cast<std::uint64_t>(consumed));
  return choose(probabilities, random.unit());
}

std::int32_t Generator::next(Session& session, const SamplingOptions& options) const {
  const std::int32_t token = chosen(session, session.consumed(), options);
  read(session, {&token, 1});
  return token;
}

std::optional<std::int64_t> Generator::room(const Session& session) const {
  const std::optional<std::int64_t> longest = model_->longest_stream();
  if (!longest.has_value()) return std::nullopt;
  return std::max<std::int64_t>(*longest - session.consumed(), 0);
}

SessionOwner Generator::owner() const {
  return {models::hash_of(*model_), tokenizer_->hash()};
}

}  // namespace cosformer::serve
