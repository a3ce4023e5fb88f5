#include "serve/masked_filler.h"

#include <algorithm>
#include <string_view>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"

namespace cosformer::serve {
namespace {

constexpr std::string_view kGap = "[MASK]";

class MaskedFiller : public GapFiller {
 public:
  MaskedFiller(std::shared_ptr<models::LanguageModel> model, data::TokenizerPointer tokenizer)
      : model_(std::move(model)), tokenizer_(std::move(tokenizer)) {
    model_->eval();
  }

  std::vector<std::vector<GapCandidate>> fill(const std::string& text, std::size_t top) override {
    std::vector<std::int32_t> tokens;
    std::vector<std::int64_t> gaps;
    std::string_view left = text;
    for (std::size_t gap = left.find(kGap); gap != std::string_view::npos; gap = left.find(kGap)) {
      tokenizer_->encode(left.substr(0, gap), tokens);
      gaps.push_back(static_cast<std::int64_t>(tokens.size()));
      tokens.push_back(tokenizer_->mask());
      left.remove_prefix(gap + kGap.size());
    }
    tokenizer_->encode(left, tokens);
    if (gaps.empty()) throw UserError("there is no gap in the text; write [MASK] where one is");
    const at::NoGradGuard no_grad;
    const at::Tensor input = at::tensor(tokens, at::kInt).unsqueeze(0).to(model_->device());
    const at::Tensor hidden = model_->hidden(input)[0].index_select(0, at::tensor(gaps).to(model_->device()));
    at::Tensor logits = model_->logits(hidden).to(at::kDouble);
    logits.select(1, tokenizer_->mask()).fill_(-INFINITY);
    const at::Tensor probabilities = at::softmax(logits, -1).cpu();
    const auto [best, ids] =
        probabilities.topk(std::min<std::int64_t>(static_cast<std::int64_t>(top), probabilities.size(1)));
    std::vector<std::vector<GapCandidate>> all;
    for (std::int64_t gap = 0; gap < best.size(0); ++gap) {
      std::vector<GapCandidate>& candidates = all.emplace_back();
      for (std::int64_t rank = 0; rank < best.size(1); ++rank) {
        const auto id = static_cast<std::int32_t>(ids[gap][rank].item<std::int64_t>());
        candidates.push_back({tokenizer_->token_name(id), best[gap][rank].item<double>()});
      }
    }
    return all;
  }

 private:
  std::shared_ptr<models::LanguageModel> model_;
  data::TokenizerPointer tokenizer_;
};

}  // namespace

std::unique_ptr<GapFiller> masked_filler(std::shared_ptr<models::LanguageModel> model,
                                         data::TokenizerPointer tokenizer) {
  return std::make_unique<MaskedFiller>(std::move(model), std::move(tokenizer));
}

}  // namespace cosformer::serve
