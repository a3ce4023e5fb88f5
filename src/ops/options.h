// The operators' options: each is declared, with its default, as a field of include/cosformer/attention.h, and listed
// here once. The schemas, what crosses the dispatcher, what autograd saves, restores and differentiates, and the plain
// values in the kernels' problem follow from this list.
#pragma once

#include "cosformer/attention.h"

namespace cosformer::ops {

// What is true of an option, or of another argument.
enum Traits : unsigned {
  kNoTraits = 0,
  kStreamed = 1,        // attention_with_state has it too
  kStreamsNeedIt = 2,   // and no default for it
  kDifferentiable = 4,  // a tensor with a gradient
  kPlain = 8,           // a number or a name; the kernels' problem and kernels/verify's case have a field of this name
  kRequired = 16,       // a tensor that cannot be absent
};

// In the order of the schemas.
#define COSFORMER_ATTENTION_OPTIONS(OPTION)      \
  OPTION(causal, kPlain)                         \
  OPTION(horizon, kStreamed | kStreamsNeedIt)    \
  OPTION(theta, kStreamed)                       \
  OPTION(log_decay, kStreamed | kDifferentiable) \
  OPTION(feature_map, kStreamed | kPlain)        \
  OPTION(reweight, kStreamed)                    \
  OPTION(normalizer, kStreamed | kPlain)         \
  OPTION(eps, kStreamed | kPlain)                \
  OPTION(key_mask, kNoTraits)                    \
  OPTION(cu_seqlens_q, kNoTraits)                \
  OPTION(cu_seqlens_k, kNoTraits)

// Does not compile where a field of AttentionOptions is not in the list.
inline void every_option_is_listed(const AttentionOptions& options) {
#define COSFORMER_COMMA_NAME(name, traits) , name
#define COSFORMER_ALL_BUT_FIRST(first, ...) __VA_ARGS__
#define COSFORMER_NAMES(...) COSFORMER_ALL_BUT_FIRST(__VA_ARGS__)
  [[maybe_unused]] const auto& [COSFORMER_NAMES(COSFORMER_ATTENTION_OPTIONS(COSFORMER_COMMA_NAME))] = options;
#undef COSFORMER_NAMES
#undef COSFORMER_ALL_BUT_FIRST
#undef COSFORMER_COMMA_NAME
}

// A field as visitors are told of it.
struct Field {
  const char* name;
  unsigned traits = kNoTraits;
};

// visit(Field, a.name, b.name, …) for each option with all of the traits, in order. The structs need to have fields of
// the names of these options only: AttentionOptions, StreamOptions, a problem of the kernels.
template <unsigned kTraits = kNoTraits, class Visit, class... Structs>
void for_each_option(const Visit& visit, Structs&... structs) {
#define COSFORMER_VISIT(name, traits) \
  if constexpr (((traits)&kTraits) == kTraits) visit(Field{#name, traits}, structs.name...);
  COSFORMER_ATTENTION_OPTIONS(COSFORMER_VISIT)
#undef COSFORMER_VISIT
}

// The options of attention_with_state as those of attention, and back: without a horizon, with the one that
// StreamOptions begin with.
inline AttentionOptions whole_options(const StreamOptions& from) {
  AttentionOptions to;
  to.causal = true;
  for_each_option<kStreamed>([](const Field&, auto& a, const auto& b) { a = b; }, to, from);
  return to;
}
inline StreamOptions stream_options(const AttentionOptions& from) {
  StreamOptions to;
  const auto assign = [](const Field&, auto& a, const auto& b) {
    if constexpr (requires { b.value_or(a); }) {
      a = b.value_or(a);
    } else {
      a = b;
    }
  };
  for_each_option<kStreamed>(assign, to, from);
  return to;
}

}  // namespace cosformer::ops
