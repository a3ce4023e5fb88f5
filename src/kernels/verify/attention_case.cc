#include "kernels/verify/attention_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <sstream>

namespace cosformer::kernels::verify {
namespace {

using Generator = std::mt19937_64;

// The standard library's distributions differ between implementations; these do not.
std::int64_t uniform(Generator& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

bool chance(Generator& random, int percent) {
  return uniform(random, 0, 99) < percent;
}

double unit(Generator& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

double normal(Generator& random) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - unit(random)));
  return radius * std::cos(2.0 * std::numbers::pi * unit(random));
}

double rounded(DType dtype, double x) {
  switch (dtype) {
    case DType::kFloat64: return x;
    case DType::kFloat32: return static_cast<float>(x);
    case DType::kBFloat16: return to_float(to_bfloat16(static_cast<float>(x)));
    case DType::kFloat16: return to_float(to_float16(static_cast<float>(x)));
  }
  return x;
}

std::vector<double> normals(Generator& random, std::int64_t count, double scale, double shift, DType dtype) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& x : values) x = rounded(dtype, scale * (normal(random) + shift));
  return values;
}

std::int64_t random_length(Generator& random, std::int64_t most) {
  if (chance(random, 6)) return 1;
  if (chance(random, 3)) return 0;
  return uniform(random, 1, most);
}

std::int64_t random_dim(Generator& random, std::int64_t most) {
  static constexpr std::int64_t kUsual[] = {8, 16, 32, 64, 128};
  if (chance(random, 4)) return uniform(random, 1, most);
  return std::min(most, chance(random, 50) ? kUsual[uniform(random, 0, 4)] : uniform(random, 1, 80));
}

void draw_sequences(AttentionCase& c, Generator& random, std::int64_t most) {
  const std::int64_t count = c.packed ? uniform(random, 1, 5) : 1;
  c.q_lengths.clear();
  c.k_lengths.clear();
  for (std::int64_t s = 0; s < count; ++s) {
    c.q_lengths.push_back(random_length(random, most));
    const bool same = c.carry_state || chance(random, 60);
    c.k_lengths.push_back(same ? c.q_lengths.back() : random_length(random, most));
  }
}

double needed_horizon(const AttentionCase& c) {
  std::int64_t longest = 1;
  for (std::size_t s = 0; s < c.q_lengths.size(); ++s) {
    longest = std::max({longest, c.q_lengths[s], c.k_lengths[s]});
  }
  return static_cast<double>(longest + c.position);
}

// An absent key holds anything, an infinity or a NaN included: padding is often left unwritten.
void poison_absent_keys(const AttentionCase& c, CaseData& d) {
  const auto row = static_cast<std::size_t>(c.heads * c.dim);
  for (std::size_t at = 0; at < d.key_mask.size(); ++at) {
    if (d.key_mask[at]) continue;
    d.k[at * row] = std::numeric_limits<double>::quiet_NaN();
    d.k[at * row + row - 1] = std::numeric_limits<double>::infinity();
  }
}

}  // namespace

std::int64_t AttentionCase::q_total() const {
  return std::accumulate(q_lengths.begin(), q_lengths.end(), std::int64_t{0});
}

std::int64_t AttentionCase::k_total() const {
  return std::accumulate(k_lengths.begin(), k_lengths.end(), std::int64_t{0});
}

std::string AttentionCase::describe() const {
  static constexpr const char* kMaps[] = {"relu", "elu1", "leaky_relu", "silu", "identity"};
  std::ostringstream text;
  text << "seed " << seed << ' ' << name_of(dtype) << " B" << batch << " H" << heads << " D" << dim << " Dv"
       << value_dim;
  for (std::size_t s = 0; s < q_lengths.size(); ++s)
    text << (s == 0 ? " " : "+") << q_lengths[s] << 'x' << k_lengths[s];
  text << (packed ? " packed" : "") << (causal ? " causal" : " full") << ' ' << kMaps[static_cast<int>(feature_map)]
       << (normalizer == Normalizer::kSum ? " sum" : " none");
  if (!reweight) text << " no-reweight";
  if (horizon > 0) text << " horizon " << horizon;
  if (theta_per_head) text << " theta";
  if (decay) text << " decay";
  if (key_mask) text << " mask";
  if (carry_state) text << " state@" << position;
  if (hand_over_sum) text << " handed over";
  if (scale != 1) text << " scale " << scale;
  if (layout != Layout::kTimeMajor) text << (layout == Layout::kHeadMajor ? " head-major" : " gapped");
  return text.str();
}

AttentionCase random_case(std::uint64_t seed, const CaseLimits& limits) {
  Generator random(seed * 0x9e3779b97f4a7c15ULL + 1);
  AttentionCase c;
  c.seed = seed;
  c.dtype =
      limits.dtypes[static_cast<std::size_t>(uniform(random, 0, static_cast<std::int64_t>(limits.dtypes.size()) - 1))];
  c.heads = uniform(random, 1, 3);
  c.dim = random_dim(random, limits.max_dim);
  c.value_dim = chance(random, 60) ? c.dim : random_dim(random, limits.max_dim);
  c.causal = chance(random, 55);
  c.carry_state = c.causal && chance(random, 35);
  c.packed = !c.carry_state && chance(random, 30);
  c.batch = c.packed ? 1 : uniform(random, 1, 3);
  draw_sequences(c, random, limits.max_length);
  c.feature_map = chance(random, 50) ? FeatureMap::kRelu : static_cast<FeatureMap>(uniform(random, 0, 4));
  c.normalizer = chance(random, 75) ? Normalizer::kSum : Normalizer::kNone;
  c.eps = chance(random, 80) ? 1e-6 : 1e-3;
  c.reweight = chance(random, 80);
  c.decay = chance(random, 40);
  c.theta_per_head = c.reweight && chance(random, 20);
  c.key_mask = !c.carry_state && chance(random, 35);
  if (c.carry_state) {
    static constexpr std::int64_t kPositions[] = {0, 1, 77, 5000, 999'999'000};
    c.position = kPositions[uniform(random, 0, 4)];
    c.horizon = needed_horizon(c) + static_cast<double>(uniform(random, 0, 50));
  } else if (chance(random, 30)) {
    c.horizon = needed_horizon(c) + 10.0 * unit(random);
  }
  if (c.dtype == DType::kFloat16) {
    c.scale = 0.25;  // the naive twin holds whole sums in this dtype: keep them below 65504
  } else if (chance(random, 15)) {
    c.scale = chance(random, 50) ? 1e-3 : 1e4;
  }
  c.layout = static_cast<Layout>(uniform(random, 0, 2));
  return c;
}

CaseData make_data(const AttentionCase& c) {
  Generator random(c.seed * 0xd1342543de82ef95ULL + 7);
  CaseData d;
  // Maps with negative features under a denominator are well-posed only where the sums stay away from zero.
  const bool signed_map = c.feature_map == FeatureMap::kLeakyRelu || c.feature_map == FeatureMap::kSilu ||
                          c.feature_map == FeatureMap::kIdentity;
  const double shift = signed_map && c.normalizer == Normalizer::kSum ? 4.0 : 0.0;
  d.q = normals(random, c.batch * c.q_total() * c.heads * c.dim, c.scale, shift, c.dtype);
  d.k = normals(random, c.batch * c.k_total() * c.heads * c.dim, c.scale, shift, c.dtype);
  d.v = normals(random, c.batch * c.k_total() * c.heads * c.value_dim, 1, 0, c.dtype);
  d.dout = normals(random, c.batch * c.q_total() * c.heads * c.value_dim, 1, 0, c.dtype);

  const double largest = std::numbers::pi / (2.0 * needed_horizon(c));
  for (std::int64_t h = 0; h < c.heads; ++h) {
    if (c.theta_per_head) {  // past π/2M weights turn negative, which only an unnormalised sum can bear
      const double reach = c.normalizer == Normalizer::kSum ? largest : 1.0;
      d.theta.push_back(static_cast<float>(reach * unit(random)));
    }
    if (c.decay) d.log_decay.push_back(h == 0 && chance(random, 10) ? 0.0 : static_cast<float>(-0.3 * unit(random)));
  }
  if (c.key_mask) {
    const int present = chance(random, 10) ? 0 : 70;
    for (std::int64_t at = 0; at < c.batch * c.k_total(); ++at) d.key_mask.push_back(chance(random, present));
    if (chance(random, 30)) poison_absent_keys(c, d);
  }
  if (c.carry_state) {
    const DType accumulation = c.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
    const std::int64_t features = c.batch * c.heads * 2 * c.dim;
    d.state_kv = normals(random, features * c.value_dim, c.scale, 0, accumulation);
    d.state_z = normals(random, features, 0.1 * c.scale, 20, accumulation);
    d.d_state_kv = normals(random, features * c.value_dim, 1, 0, accumulation);
    d.d_state_z = normals(random, features, 1, 0, accumulation);
  }

  const std::int64_t count = c.packed ? static_cast<std::int64_t>(c.q_lengths.size()) : c.batch;
  std::int64_t q_begin = 0, k_begin = 0;
  for (std::int64_t s = 0; s < count; ++s) {
    const auto at = static_cast<std::size_t>(c.packed ? s : 0);
    Sequence sequence{.batch = c.packed ? 0 : s,
                      .q_begin = q_begin,
                      .q_length = c.q_lengths[at],
                      .k_begin = k_begin,
                      .k_length = c.k_lengths[at],
                      .position = c.position};
    const double longest = static_cast<double>(std::max(sequence.q_length, sequence.k_length));
    const double horizon = c.horizon > 0 ? c.horizon : longest;
    if (c.reweight && horizon > 0) sequence.theta = std::numbers::pi / (2.0 * horizon);
    if (!c.theta_per_head && std::floor(horizon) == horizon) sequence.period = 4 * static_cast<std::int64_t>(horizon);
    d.sequences.push_back(sequence);
    if (c.packed) {
      q_begin += sequence.q_length;
      k_begin += sequence.k_length;
    }
  }
  return d;
}

}  // namespace cosformer::kernels::verify
