#include "models/text_to_text/greedy_writing.h"

#include <algorithm>
#include <optional>

#include <ATen/ATen.h>

#include "base/error.h"

namespace cosformer::models {
namespace {

// Nothing where the decoder's attention carries no state.
std::optional<WritingState> state_of(EncoderDecoder& model, const EncodedSource& source) {
  try {
    return model.begin_writing(source);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::vector<std::int32_t>> write_greedily(EncoderDecoder& model, const at::Tensor& source,
                                                      const at::Tensor& mask, const GreedyOptions& o) {
  const at::NoGradGuard no_grad;
  const std::int64_t batch = source.size(0), room = model.config().model.input.max_length - 1;
  const std::int64_t most = o.max_tokens > 0 ? std::min(o.max_tokens, room) : room;
  const EncodedSource encoded = model.encode(source, mask);
  std::optional<WritingState> state = state_of(model, encoded);
  at::Tensor next = at::full({batch, 1}, o.end, source.options().dtype(at::kLong)), written = next;
  std::vector<std::vector<std::int32_t>> answers(static_cast<std::size_t>(batch));
  std::vector<bool> ended(answers.size(), false);
  for (std::int64_t count = 0; count < most; ++count) {
    const at::Tensor hidden = state ? model.write_hidden(next, *state) : model.hidden(written, {}, encoded);
    next = model.logits(hidden.select(1, hidden.size(1) - 1)).argmax(-1, true);
    if (!state) written = at::cat({written, next}, 1);
    const at::Tensor host = next.cpu();
    const std::int64_t* tokens = host.data_ptr<std::int64_t>();
    for (std::size_t row = 0; row < answers.size(); ++row) {
      ended[row] = ended[row] || tokens[row] == o.end;
      if (!ended[row]) answers[row].push_back(static_cast<std::int32_t>(tokens[row]));
    }
    if (std::all_of(ended.begin(), ended.end(), [](bool is) { return is; })) break;
  }
  return answers;
}

}  // namespace cosformer::models
