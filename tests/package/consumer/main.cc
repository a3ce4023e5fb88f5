// Attention on a padded batch, and the same tokens streamed: as a user of the installed library would write it.
#include <cstdio>

#include <ATen/ATen.h>
#include <cosformer/attention.h>

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
  return difference < 1e-4 ? 0 : 1;
}
