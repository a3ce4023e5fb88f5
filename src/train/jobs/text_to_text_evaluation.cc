#include "train/jobs/text_to_text_evaluation.h"

#include <chrono>
#include <cmath>

#include <ATen/ATen.h>

#include "data/batches/batch_stream.h"
#include "data/batches/lm_batches.h"
#include "models/text_to_text/greedy_writing.h"
#include "runs/device.h"
#include "train/inputs/text_to_text_batch.h"
#include "train/inputs/text_to_text_data.h"
#include "train/jobs/evaluation_mode.h"

namespace cosformer::train {
namespace {

// Every batch once, without gradients or dropout; the model's mode is restored.
void over_batches(models::EncoderDecoder& model, const data::DatasetPointer& dataset, const EvaluationOptions& options,
                  const std::function<void(std::size_t)>& progress,
                  const std::function<void(const data::Batch&)>& use) {
  const EvaluationMode mode(model);
  const at::NoGradGuard no_grad;
  data::BatchOptions batches = options.batches;
  batches.shuffle = false;
  batches.drop_last = false;
  data::BatchStream stream(dataset, batches, 0, {}, 1);
  while (const std::optional<data::Batch> batch = stream.next()) {
    if (options.stop && options.stop()) throw EvaluationStopped{};
    const runs::AutocastScope autocast(options.device, options.bfloat16);
    use(*batch);
    if (progress) progress(batch->labels.size());
  }
}

// Tokens that are the likeliest; a row's logits at a time, because a batch's may not fit.
at::Tensor count_found(models::EncoderDecoder& model, const at::Tensor& hidden, const at::Tensor& targets) {
  at::Tensor found = at::zeros({}, targets.options());
  for (std::int64_t row = 0; row < hidden.size(0); ++row) {
    found += model.logits(hidden[row]).argmax(-1).eq(targets[row]).sum();  // no token is kNoTarget
  }
  return found;
}

bool is_right(const data::SequenceView& target, const std::vector<std::int32_t>& answer, std::int64_t most) {
  std::vector<std::int32_t> wanted(std::min(target.size, static_cast<std::size_t>(most)));
  target.copy_token_ids(wanted.size(), wanted.data());
  for (std::int32_t& id : wanted) id -= data::kFirstToken;
  return wanted == answer;
}

}  // namespace

double TextToTextEvaluation::perplexity() const {
  return std::exp(loss());
}

data::DatasetPointer written_examples(const data::DatasetPointer& pairs, std::int64_t count) {
  return data::sample(pairs, static_cast<std::size_t>(count), 0);
}

std::vector<std::vector<std::int32_t>> write_answers(models::EncoderDecoder& model, const data::DatasetPointer& sources,
                                                     const data::Tokenizer& tokenizer, const EvaluationOptions& options,
                                                     const std::function<void(std::size_t)>& progress) {
  std::vector<std::vector<std::int32_t>> answers(sources->size());
  over_batches(model, sources, options, progress, [&](const data::Batch& batch) {
    const SourceInputs source = source_inputs(batch.first, tokenizer.end_of_document(), options.device);
    const auto written =
        models::write_greedily(model, source.tokens, source.mask, {tokenizer.end_of_document(), /*max_tokens=*/0});
    for (std::size_t row = 0; row < written.size(); ++row) answers[batch.examples[row]] = written[row];
  });
  return answers;
}

TextToTextEvaluation evaluate_text_to_text(models::EncoderDecoder& model, const data::DatasetPointer& pairs,
                                           const data::Tokenizer& tokenizer, std::int64_t write,
                                           const EvaluationOptions& options,
                                           const std::function<void(std::size_t)>& progress) {
  const auto begin = std::chrono::steady_clock::now();
  TextToTextEvaluation result;
  at::Tensor nats = at::zeros({}, at::TensorOptions(at::kDouble).device(options.device));
  at::Tensor counts = at::zeros({2}, at::TensorOptions(at::kLong).device(options.device));  // tokens, found
  over_batches(model, pairs, options, progress, [&](const data::Batch& batch) {
    const TextToTextInputs inputs = text_to_text_inputs(batch, tokenizer.end_of_document(), options.device);
    const at::Tensor hidden = target_hidden(model, inputs);
    nats += model.losses(hidden, inputs.targets).sum().to(at::kDouble);
    counts += at::stack({inputs.targets.ne(data::kNoTarget).sum(), count_found(model, hidden, inputs.targets)});
    result.examples += batch.examples.size();
    ++result.batches;
  });
  result.nats = nats.item<double>();
  const at::Tensor host = counts.cpu();
  result.tokens = static_cast<std::uint64_t>(host[0].item<std::int64_t>());
  result.found = static_cast<std::uint64_t>(host[1].item<std::int64_t>());
  if (write > 0) {
    const data::DatasetPointer chosen = written_examples(pairs, write);
    const auto answers = write_answers(model, chosen, tokenizer, options, progress);
    result.written = answers.size();
    for (std::size_t i = 0; i < answers.size(); ++i) {
      result.right += is_right(chosen->get(i).second, answers[i], options.batches.max_length) ? 1 : 0;
    }
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

PartResult part_result(const TextToTextEvaluation& e) {
  PartResult result{{{"loss", e.loss()}, {"perplexity", e.perplexity()}, {"token_accuracy", e.token_accuracy()}},
                    {{"examples", e.examples}, {"tokens", e.tokens}, {"written", e.written}},
                    e.seconds,
                    e.batches};
  if (e.written > 0) result.metrics.emplace_back("exact_match", e.exact_match());
  return result;
}

}  // namespace cosformer::train
