#include "train/jobs/evaluate.h"

#include <chrono>

#include <ATen/ATen.h>

#include "data/batches/batch_stream.h"
#include "runs/device.h"
#include "train/jobs/evaluation_mode.h"

namespace cosformer::train {
namespace {

// Runs the model over every batch once, without gradients or dropout; the model's mode is restored.
void over_batches(models::Classifier& model, const data::DatasetPointer& dataset, const EvaluationOptions& options,
                  const std::function<void(const data::Batch&, const DeviceBatch&, const at::Tensor& logits)>& use) {
  const EvaluationMode mode(model);
  at::NoGradGuard no_grad;
  data::BatchOptions batches = options.batches;
  batches.shuffle = false;
  batches.drop_last = false;
  data::BatchStream stream(dataset, batches, 0, {}, 1);
  while (const std::optional<data::Batch> batch = stream.next()) {
    if (options.stop && options.stop()) throw EvaluationStopped{};
    const DeviceBatch on_device = to_device(*batch, options.device);
    const runs::AutocastScope autocast(options.device, options.bfloat16);
    use(*batch, on_device, logits_of(model, on_device).to(at::kFloat));
  }
}

}  // namespace

Evaluation evaluate(models::Classifier& model, const data::DatasetPointer& dataset, const EvaluationOptions& options,
                    const std::function<void(std::size_t)>& progress) {
  const auto begin = std::chrono::steady_clock::now();
  Evaluation result;
  at::Tensor sums = at::zeros({2}, at::TensorOptions(at::kDouble).device(options.device));  // loss, right answers
  std::vector<at::Tensor> pairs;  // of a label and a choice, as one number
  std::int64_t classes = 0;
  over_batches(model, dataset, options, [&](const data::Batch& batch, const DeviceBatch& d, const at::Tensor& logits) {
    const at::Tensor loss = at::cross_entropy_loss(logits, d.labels, {}, at::Reduction::Sum);
    const at::Tensor chosen = logits.argmax(-1);
    sums += at::stack({loss.to(at::kDouble), chosen.eq(d.labels).sum().to(at::kDouble)});
    pairs.push_back(d.labels * logits.size(1) + chosen);
    classes = logits.size(1);
    result.examples += batch.labels.size();
    ++result.batches;
    if (progress) progress(batch.labels.size());
  });
  const at::Tensor host = sums.cpu();
  const auto count = static_cast<double>(std::max<std::size_t>(result.examples, 1));
  result.loss = host[0].item<double>() / count;
  result.accuracy = host[1].item<double>() / count;
  if (!pairs.empty()) {
    const at::Tensor counts = at::bincount(at::cat(pairs).cpu(), {}, classes * classes);
    const auto* count = counts.data_ptr<std::int64_t>();
    result.confusion.assign(count, count + counts.numel());
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::vector<std::vector<float>> predict(models::Classifier& model, const data::DatasetPointer& dataset,
                                        const EvaluationOptions& options,
                                        const std::function<void(std::size_t)>& progress) {
  std::vector<std::vector<float>> result(dataset->size());
  over_batches(model, dataset, options, [&](const data::Batch& batch, const DeviceBatch&, const at::Tensor& logits) {
    const at::Tensor host = logits.softmax(-1).cpu().contiguous();
    const float* row = host.data_ptr<float>();
    for (const std::uint32_t example : batch.examples) {
      result[example].assign(row, row + host.size(1));
      row += host.size(1);
    }
    if (progress) progress(batch.labels.size());
  });
  return result;
}

}  // namespace cosformer::train
