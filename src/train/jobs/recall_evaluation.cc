#include "train/jobs/recall_evaluation.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "runs/device.h"
#include "train/inputs/recall_batch.h"
#include "train/jobs/evaluation_mode.h"

namespace cosformer::train {
namespace {

class RangeSums {
 public:
  explicit RangeSums(std::int64_t most) : most_(most) {}

  // n ≥ 1
  void add(std::int64_t n, bool right) {
    const auto number = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
    if (ranges_.size() <= number) ranges_.resize(number + 1);
    ranges_[number].queries += 1;
    ranges_[number].right += right ? 1 : 0;
  }

  std::vector<RecallRange> result() const {
    std::vector<RecallRange> all;
    for (std::size_t number = 0; number < ranges_.size(); ++number) {
      if (ranges_[number].queries == 0) continue;
      all.push_back(ranges_[number]);
      all.back().first = number == 0 ? 1 : (std::int64_t{1} << (number - 1)) + 1;
      all.back().last = std::min(std::int64_t{1} << number, most_);
    }
    return all;
  }

 private:
  std::int64_t most_;
  std::vector<RecallRange> ranges_;
};

// What the model says at the queries of a batch, in their order: whether it is right, and −ln p of the wanted value.
struct Said {
  at::Tensor right, nats;  // on the host
};

Said ask(models::LanguageModel& model, const data::LmBatch& batch, const RecallEvaluationOptions& o) {
  const MaskedInputs inputs = recall_inputs(batch, batch.predictions, o.device);
  const runs::AutocastScope autocast(o.device, o.bfloat16);
  const at::Tensor hidden = masked_hidden(model, inputs);
  return {model.logits(hidden).argmax(-1).eq(inputs.targets).flatten().cpu(),
          model.losses(hidden, inputs.targets).sum().to(at::kDouble).cpu()};
}

void add_ranges(const std::string& kind, const std::vector<RecallRange>& ranges, PartResult& result) {
  for (const RecallRange& range : ranges) {
    result.metrics.emplace_back(fmt::format("accuracy_{}_{}_{}", kind, range.first, range.last), range.accuracy());
  }
}

}  // namespace

RecallEvaluation evaluate_recall(models::LanguageModel& model, const data::RecallConfig& config,
                                 const RecallEvaluationOptions& o) {
  const auto begin = std::chrono::steady_clock::now();
  const EvaluationMode mode(model);
  const at::NoGradGuard no_grad;
  RecallEvaluation result;
  RangeSums by_pairs(config.pairs), by_distance(config.length);
  for (std::uint64_t number = 0; number < o.texts;) {
    if (o.stop && o.stop()) throw EvaluationStopped{};
    std::vector<data::RecallText> texts;
    while (number < o.texts && static_cast<std::int64_t>(texts.size()) < o.rows) {
      texts.push_back(data::recall_text(config, o.seeds, o.part, number++));
    }
    const Said said = ask(model, data::recall_batch(texts, {}), o);
    const bool* right = said.right.data_ptr<bool>();
    for (const data::RecallText& text : texts) {
      for (const data::RecallQuery& query : text.queries) {
        by_pairs.add(text.pairs, *right);
        by_distance.add(query.distance, *right);
        result.right += *right++ ? 1 : 0;
        ++result.queries;
      }
    }
    result.nats += said.nats.item<double>();
    result.texts += texts.size();
    ++result.batches;
    if (o.progress) o.progress(texts.size());
  }
  result.by_pairs = by_pairs.result();
  result.by_distance = by_distance.result();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

PartResult part_result(const RecallEvaluation& e) {
  PartResult result{{{"loss", e.loss()}, {"accuracy", e.accuracy()}},
                    {{"examples", e.texts}, {"queries", e.queries}},
                    e.seconds,
                    e.batches};
  add_ranges("pairs", e.by_pairs, result);
  add_ranges("distance", e.by_distance, result);
  return result;
}

}  // namespace cosformer::train
