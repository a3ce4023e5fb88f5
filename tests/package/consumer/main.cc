// Attention on a batch, the same tokens streamed, and what comes of wrong arguments: as a user of the installed library
// would write it.
#include <cstdio>
#include <stdexcept>
#include <string>

#include <ATen/ATen.h>
#include <cosformer/attention.h>
#include <cosformer/nn.h>

namespace {

// Refused with a std::runtime_error whose text is one line, without a backtrace.
template <class Call>
bool refuses(const char* what, const Call& call) {
  try {
    call();
    std::printf("%s: accepted\n", what);
    return false;
  } catch (const std::runtime_error& error) {
    std::printf("%s: %s\n", what, error.what());
    return std::string(error.what()).find('\n') == std::string::npos;
  }
}

}  // namespace

int main() {
  const at::Tensor x = at::randn({2, 100, 4, 32});
  cosformer::AttentionOptions options;
  options.causal = true;
  options.horizon = 128;
  const at::Tensor whole = cosformer::attention(x, x, x, options);

  cosformer::AttentionState state = cosformer::AttentionState::empty(2, 4, 32, 32);
  double difference = 0;
  for (std::int64_t t = 0; t < x.size(1); ++t) {
    const at::Tensor token = x.narrow(1, t, 1);
    const at::Tensor out = cosformer::attention_with_state(token, token, token, state, {.horizon = 128});
    difference = std::max(difference, (out - whole.narrow(1, t, 1)).abs().max().item<double>());
  }
  std::printf("streamed and whole differ by %.1e\n", difference);
  cosformer::nn::CosformerAttention attention(
      cosformer::nn::CosformerAttentionOptions{.embed_dim = 32, .num_heads = 4, .causal = true});
  const bool refused =
      refuses("three dimensions", [&] { cosformer::attention(x[0], x, x, options); }) && refuses("another width", [&] {
        attention->forward(at::randn({2, 10, 16}));
      });
  return difference < 1e-4 && refused ? 0 : 1;
}
