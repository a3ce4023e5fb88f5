#include "train/jobs/language_evaluation.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "runs/device.h"
#include "train/inputs/language_batch.h"
#include "train/jobs/evaluation_mode.h"

namespace cosformer::train {
namespace {

using Clock = std::chrono::steady_clock;

// Range 0 is no context, range r is 2^(r-1) to 2^r - 1 tokens.
std::size_t range_of(std::int64_t context) {
  return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(context)));
}

class ContextSums {
 public:
  void add(std::int64_t context, double nats) {
    const std::size_t range = range_of(context);
    if (ranges_.size() <= range) ranges_.resize(range + 1);
    ranges_[range].tokens += 1;
    ranges_[range].nats += nats;
    ranges_[range].last = std::max(ranges_[range].last, context);
  }
  std::vector<ContextRange> result() const {
    std::vector<ContextRange> all;
    for (std::size_t range = 0; range < ranges_.size(); ++range) {
      if (ranges_[range].tokens == 0) continue;
      all.push_back(ranges_[range]);
      all.back().first = range == 0 ? 0 : std::int64_t{1} << (range - 1);
    }
    return all;
  }

 private:
  std::vector<ContextRange> ranges_;
};

void require_carry_possible(const models::LanguageModel& model, const LanguageEvaluationOptions& o) {
  const std::optional<std::int64_t> longest = model.longest_stream();
  if (longest && o.carry > *longest) {
    throw UserError(
        fmt::format("the state cannot be carried over {} tokens: the model's horizon is {}", o.carry, *longest));
  }
  if (o.documents_apart) {
    throw UserError(
        "documents that are kept apart carry no state from window to window; set data.documents_apart "
        "or the carrying, not both");
  }
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

double LanguageEvaluation::perplexity() const {
  return std::exp(loss());
}

double LanguageEvaluation::word_perplexity() const {
  return std::exp(nats / static_cast<double>(counts.words_and_lines()));
}

double LanguageEvaluation::bits_per_byte() const {
  return nats / std::log(2.0) / static_cast<double>(counts.bytes);
}

LanguageEvaluation evaluate_language(models::LanguageModel& model, const data::CorpusPart& part,
                                     const data::TokenizerPointer& tokenizer, const LanguageEvaluationOptions& o) {
  const auto begin = Clock::now();
  const EvaluationMode mode(model);
  at::NoGradGuard no_grad;
  LanguageEvaluation result;
  result.counts = part.counts();
  result.carried = o.carry > o.window;
  if (result.carried) require_carry_possible(model, o);
  const std::int64_t windows_of_a_state = result.carried ? o.carry / o.window : 1;
  const auto stream =
      data::whole_stream(part, tokenizer, {o.rows, o.window, o.documents_apart}, result.carried ? 0 : o.context);
  models::LmState state;
  ContextSums sums;
  for (std::uint64_t number = 0; number < stream->batches(0); ++number) {
    if (o.stop && o.stop()) throw EvaluationStopped{};
    const data::LmBatch batch = stream->at({0, number});
    const std::int64_t behind = static_cast<std::int64_t>(number) % windows_of_a_state;
    const LanguageInputs inputs = language_inputs(batch, o.documents_apart, o.device);
    at::Tensor losses;
    {
      const runs::AutocastScope autocast(o.device, o.bfloat16);
      if (result.carried) {
        if (behind == 0) state = model.empty_state(o.rows);
        losses = model.stream_loss(inputs.tokens, inputs.targets, state);
      } else {
        losses = model.loss(inputs.tokens, inputs.targets, inputs.cu_seqlens);
      }
    }
    const at::Tensor host = losses.to(at::kFloat).cpu().contiguous();
    const float* loss = host.data_ptr<float>();
    std::size_t sequence = 0;
    for (std::size_t place = 0; place < batch.targets.size(); ++place) {
      while (place >= static_cast<std::size_t>(batch.offsets[sequence + 1])) ++sequence;
      if (batch.targets[place] == data::kNoTarget) continue;
      result.nats += loss[place];
      const auto in_sequence = static_cast<std::int64_t>(place) - batch.offsets[sequence];
      sums.add(behind * o.window + in_sequence, loss[place]);
    }
    ++result.batches;
    if (o.progress) o.progress(static_cast<std::size_t>(batch.predictions));
  }
  result.by_context = sums.result();
  result.seconds = seconds_since(begin);
  return result;
}

MaskedEvaluation evaluate_masked(models::LanguageModel& model, const data::CorpusPart& part,
                                 const data::TokenizerPointer& tokenizer, const data::MaskOptions& masks,
                                 const LanguageEvaluationOptions& o) {
  const auto begin = Clock::now();
  const EvaluationMode mode(model);
  at::NoGradGuard no_grad;
  MaskedEvaluation result;
  const auto stream = data::whole_stream(part, tokenizer, {o.rows, o.window, o.documents_apart});
  at::Tensor sums = at::zeros({3}, at::TensorOptions(at::kDouble).device(o.device));  // losses, found, tokens
  for (std::uint64_t number = 0; number < stream->batches(0); ++number) {
    if (o.stop && o.stop()) throw EvaluationStopped{};
    const data::LmBatch batch = stream->at({0, number});
    const MaskedInputs inputs = masked_inputs(batch, *tokenizer, masks, 0, o.documents_apart, o.device);
    const runs::AutocastScope autocast(o.device, o.bfloat16);
    const at::Tensor hidden = masked_hidden(model, inputs);
    const at::Tensor present = inputs.targets.ne(data::kNoTarget);
    const at::Tensor found = model.logits(hidden).argmax(-1).eq(inputs.targets).logical_and(present);
    sums += at::stack({model.losses(hidden, inputs.targets).sum().to(at::kDouble), found.sum().to(at::kDouble),
                       present.sum().to(at::kDouble)});
    ++result.batches;
    if (o.progress) o.progress(static_cast<std::size_t>(batch.predictions));
  }
  const at::Tensor host = sums.cpu();
  result.tokens = static_cast<std::uint64_t>(host[2].item<double>());
  if (result.tokens == 0) throw UserError("no token of the text was masked; give more text or a higher data.mask_rate");
  result.loss = host[0].item<double>() / static_cast<double>(result.tokens);
  result.accuracy = host[1].item<double>() / static_cast<double>(result.tokens);
  result.seconds = seconds_since(begin);
  return result;
}

PartResult part_result(const LanguageEvaluation& e) {
  return {{{"loss", e.loss()},
           {"perplexity", e.perplexity()},
           {"word_perplexity", e.word_perplexity()},
           {"bits_per_byte", e.bits_per_byte()}},
          {{"tokens", e.counts.tokens}, {"words", e.counts.words_and_lines()}, {"bytes", e.counts.bytes}},
          e.seconds,
          e.batches};
}

PartResult part_result(const MaskedEvaluation& e) {
  return {{{"loss", e.loss}, {"masked_accuracy", e.accuracy}}, {{"masked_tokens", e.tokens}}, e.seconds, e.batches};
}

}  // namespace cosformer::train
