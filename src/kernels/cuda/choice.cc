#include "kernels/cuda/choice.h"

#include <algorithm>

namespace cosformer::kernels::cuda {
namespace {

// --- What the tables ask about.

// A token's row is found by 32-bit strides.
template <class... Views>
bool short_strides(const Views&... views) {
  return ((views.time_stride < (1LL << 31) && -views.time_stride < (1LL << 31)) && ...);
}

struct Facts {
  const Problem& p;
  const Gradients* g;
  const Device& device;
  HeadSide features, values;

  Facts(const Problem& problem, const Gradients* gradients, const Device& d)
      : p(problem), g(gradients), device(d), features(problem.dim), values(problem.value_dim) {}

  bool forward() const { return g == nullptr; }
  bool two_sided() const { return !p.causal && p.log_decay != nullptr; }
  bool packed() const { return p.cu_seqlens_q != nullptr; }
  bool same_tokens() const { return p.q_length == p.k_length && p.cu_seqlens_q == p.cu_seqlens_k; }
  std::int64_t heads() const { return p.sequences * p.heads; }
  std::int64_t query_rows() const { return packed() ? p.total_q : p.sequences * p.q_length; }
  bool narrow() const { return p.dim <= kNarrowDim && p.value_dim <= kNarrowDim; }
  bool past_wide() const { return p.dim > kWideDim || p.value_dim > kWideDim; }
  bool leaves_state() const { return forward() && p.state_kv_out != nullptr; }

  bool decodes() const {
    return forward() && p.causal && p.state_kv_in != nullptr && p.state_kv_out != nullptr && !packed() &&
           p.q_length == p.k_length && p.q_length >= 1 && p.q_length <= kMaxDecodeTokens;
  }
  bool in_contract() const {
    const bool shapes = p.dim > 0 && p.dim <= kMaxHeadDim && p.value_dim > 0 && p.value_dim <= kMaxHeadDim &&
                        p.heads > 0 && p.sequences >= 0 && p.q_length >= 0 && p.k_length >= 0 &&
                        p.q_length < (1LL << 30) && p.k_length < (1LL << 30) &&
                        short_strides(p.q, p.k, p.v, p.out, p.denominator) &&
                        (g == nullptr || short_strides(g->dout, g->dq, g->dk, g->dv));
    const bool state = p.state_kv_in != nullptr || p.state_kv_out != nullptr;
    const bool denominators =
        p.normalizer == Normalizer::kNone || p.denominator.data != nullptr || query_rows() == 0 || decodes();
    return shapes && denominators && packed() == (p.cu_seqlens_k != nullptr) &&
           (p.state_kv_in == nullptr) == (p.state_z_in == nullptr) &&
           (p.state_kv_out == nullptr) == (p.state_z_out == nullptr) && (!state || p.causal);
  }
  bool rows_in_pieces() const {
    const auto fit = [&](const auto& view, std::int64_t columns) { return in_pieces(view, columns, p.dtype); };
    return fit(p.q, p.dim) && fit(p.k, p.dim) && fit(p.v, p.value_dim) && fit(p.out, p.value_dim) &&
           (forward() ||
            (fit(g->dout, p.value_dim) && fit(g->dq, p.dim) && fit(g->dk, p.dim) && fit(g->dv, p.value_dim)));
  }
  // Heads of more than 128 that shapes and options let go through the Hopper kernels in parts.
  bool comes_in_parts() const {
    return past_wide() && p.dim % 8 == 0 && p.value_dim % 8 == 0 && features.even() && values.even() &&
           p.dtype == DType::kBFloat16 && p.feature_map == FeatureMap::kRelu && !two_sided() &&
           p.state_kv_in == nullptr && p.state_kv_out == nullptr && device.is_hopper();
  }
  bool state_gradients() const { return !forward() && (g->d_state_kv_out != nullptr || g->d_state_kv_in != nullptr); }
  // Strides that TMA knows.
  bool tensor_strides() const {
    const auto known = [](const auto& view) {
      constexpr std::int64_t kMost = (std::int64_t{1} << 40) / 2;  // of 16-bit numbers
      const auto fits = [](std::int64_t stride) { return stride > 0 && stride < kMost; };
      return fits(view.time_stride) && fits(view.head_stride) && fits(view.batch_stride);
    };
    return known(p.q) && known(p.k) && known(p.v) && known(p.out);
  }
};

// --- The family: the first row that holds. The second column is whose kernels sum segments.

struct FamilyRule {
  Family family, sums;
  bool (*holds)(const Facts& f);
  const char* because;
};

constexpr FamilyRule kFamilies[] = {
    {Family::kRefused, Family::kRefused, [](const Facts& f) { return f.p.dtype == DType::kFloat64; },
     "the CUDA kernels are for float16, bfloat16 and float32"},
    {Family::kRefused, Family::kRefused, [](const Facts& f) { return !f.in_contract(); },
     "the problem is outside the contract of kernels/cuda/problem.h"},
    {Family::kDecode, Family::kDecode, [](const Facts& f) { return f.decodes(); },
     "at most 8 new tokens on a carried state, which is read and written once"},
    {Family::kGeneral, Family::kGeneral, [](const Facts& f) { return !f.device.is_hopper(); },
     "the Hopper kernels are for devices of compute capability 9.0"},
    {Family::kGeneral, Family::kGeneral, [](const Facts& f) { return f.p.dtype != DType::kBFloat16; },
     "the Hopper kernels are for bfloat16"},
    {Family::kGeneral, Family::kGeneral, [](const Facts& f) { return f.p.feature_map != FeatureMap::kRelu; },
     "the Hopper kernels know no feature map but ReLU"},
    {Family::kGeneral, Family::kGeneral, [](const Facts& f) { return !f.rows_in_pieces(); },
     "the Hopper kernels want rows that begin at multiples of 16 bytes and are multiples of 16 bytes"},
    {Family::kGeneral, Family::kGeneral,
     [](const Facts& f) { return f.past_wide() && (!f.comes_in_parts() || f.state_gradients()); },
     "heads of more than 128 go through the Hopper kernels in two blocks of 65 to 128 columns, without a carried state "
     "and without a decay in full attention"},
    {Family::kGeneral, Family::kGeneral, [](const Facts& f) { return f.leaves_state(); },
     "a state that leaves is promised in float32, which the Hopper kernels' sums do not keep"},
    {Family::kGeneral, Family::kNarrow, [](const Facts& f) { return f.two_sided() && f.narrow() && !f.same_tokens(); },
     "queries and keys of different lengths have no common pairs of chunks, in which heads of up to 64 meet both "
     "sides"},
    {Family::kBothSides, Family::kBothSides, [](const Facts& f) { return f.two_sided() && f.narrow(); },
     "full attention with a decay, heads of up to 64: one sweep meets both sides"},
    {Family::kNarrow, Family::kNarrow, [](const Facts& f) { return f.narrow(); },
     "heads of up to 64 columns: one warpgroup, each warp with 16 rows"},
    {Family::kWide, Family::kWide, [](const Facts& f) { return !f.past_wide(); },
     "heads of 65 to 128 columns: warp-specialised"},
    {Family::kWide, Family::kWide, [](const Facts& /*f*/) { return true; },
     "heads of more than 128 columns, in blocks of 65 to 128: warp-specialised"},
};

// --- How rows come: the first row that holds.

struct FetchRule {
  Fetch fetch;
  bool (*holds)(const Facts& f, const Choice& c);
  const char* because;
};

constexpr FetchRule kFetches[] = {
    {Fetch::kPlain, [](const Facts& /*f*/, const Choice& c) { return c.family == Family::kDecode; },
     "few rows; the state goes through registers"},
    {Fetch::kPlain,
     [](const Facts& f, const Choice& c) { return c.family == Family::kGeneral && f.p.dtype == DType::kFloat32; },
     "float32 numbers are split in three on their way to shared memory"},
    {Fetch::kPlain, [](const Facts& f, const Choice& c) { return c.family == Family::kGeneral && !f.rows_in_pieces(); },
     "some rows do not begin at multiples of 16 bytes"},
    {Fetch::kCpAsync, [](const Facts& /*f*/, const Choice& c) { return c.family == Family::kGeneral; },
     "the general kernels run from compute capability 8.0 on, which has no TMA"},
    {Fetch::kMaskedCpAsync, [](const Facts& f, const Choice& /*c*/) { return f.p.key_mask != nullptr; },
     "there is a key mask, and absent keys become zeros on the way"},
    {Fetch::kCpAsync, [](const Facts& f, const Choice& /*c*/) { return !f.forward(); },
     "the kernels of gradients have no TMA"},
    {Fetch::kCpAsync, [](const Facts& /*f*/, const Choice& c) { return c.family == Family::kBothSides; },
     "the kernels that meet both sides have no TMA"},
    {Fetch::kCpAsync,
     [](const Facts& /*f*/, const Choice& c) { return c.family == Family::kWide && !c.state_in_registers; },
     "of wide heads the causal forward pass alone has TMA, and not in blocks of features"},
    {Fetch::kCpAsync, [](const Facts& f, const Choice& /*c*/) { return f.packed(); },
     "TMA takes tiles out of a regular tensor, and these sequences are packed"},
    {Fetch::kCpAsync,
     [](const Facts& f, const Choice& /*c*/) { return f.p.q_length == 0 || f.p.k_length == 0 || !f.tensor_strides(); },
     "TMA knows neither empty tensors nor strides that are not positive"},
    {Fetch::kCpAsync, [](const Facts& f, const Choice& /*c*/) { return !f.device.tensor_maps; },
     "the device's driver describes no such tensor to TMA"},
    {Fetch::kTma, [](const Facts& /*f*/, const Choice& /*c*/) { return true; },
     "rows of a regular tensor, forward pass"},
};

// --- How sweeps are launched: the first row that holds.

// Blocks, a segment each, that a device has to hold at once so that they may wait for each other.
bool fit_at_once(const Facts& f, std::int64_t segments, int per_multiprocessor) {
  return f.heads() * segments <= static_cast<std::int64_t>(f.device.multiprocessors) * per_multiprocessor;
}
// Shapes whose forward pass may be one cooperative launch; the scan of more segments of a narrow head would take long.
bool cooperative_shape(const Facts& f, const Choice& c) {
  constexpr int kMostNarrowSegments = 33;
  return f.forward() && (c.family == Family::kNarrow || c.family == Family::kWide) && f.p.causal &&
         f.p.state_kv_in == nullptr && c.parts.features == 1 && c.plan.sweep.count > 1 &&
         (c.family == Family::kWide || c.plan.sweep.count <= kMostNarrowSegments);
}
bool cooperative_fits(const Facts& f, const Choice& c) {
  if (c.family == Family::kWide) return fit_at_once(f, c.plan.sweep.count * c.plan.key_sums_per_segment, 1);
  return fit_at_once(f, c.plan.sweep.count,
                     c.key_sum_floats > 0 ? f.device.narrow_blocks_keeping : f.device.narrow_blocks);
}

struct LaunchRule {
  Launch launch;
  bool (*holds)(const Facts& f, const Choice& c);
  const char* because;
};

constexpr const char* kFromAllKeys = "without a decay one sum over all of the other side serves every row";
constexpr const char* kUncut = "the sequence is not cut, and its state runs along";

// Of sweeps over queries.
constexpr LaunchRule kKeyLaunches[] = {
    {Launch::kSingle, [](const Facts& f, const Choice& c) { return !f.forward() && c.key_sum_floats > 0; },
     "the forward pass has left the sums that it starts from"},
    {Launch::kSingle,
     [](const Facts& f, const Choice& c) {
       return f.forward() && !c.plan.running && c.family == Family::kNarrow && c.plan.sum_keys.count == 1 &&
              c.plan.sweep_over_queries.count == 1;
     },
     "sequences are not cut: a block sums all keys of its head and takes the sum to the rows"},
    {Launch::kSumFirst,
     [](const Facts& /*f*/, const Choice& c) { return !c.plan.running && c.plan.sum_keys.count == 1; }, kFromAllKeys},
    {Launch::kSegmentScan, [](const Facts& /*f*/, const Choice& c) { return !c.plan.running; }, kFromAllKeys},
    {Launch::kSumFirst,
     [](const Facts& /*f*/, const Choice& c) { return c.family == Family::kBothSides && c.plan.sweep.count == 1; },
     "what lies after each pair of chunks is summed first"},
    {Launch::kSegmentScan, [](const Facts& /*f*/, const Choice& c) { return c.family == Family::kBothSides; },
     "what lies after each pair of chunks, and both sums of each segment, are made first"},
    {Launch::kSingle,
     [](const Facts& f, const Choice& c) { return c.plan.sweep.count == 1 && f.p.state_kv_in == nullptr; }, kUncut},
    {Launch::kCooperative,
     [](const Facts& f, const Choice& c) {
       return cooperative_shape(f, c) && c.fetch == Fetch::kTma && cooperative_fits(f, c);
     },
     "all segments of all heads fit on the device at once, and rows come by TMA"},
    {Launch::kCooperativeScan,
     [](const Facts& f, const Choice& c) {
       return c.family == Family::kWide && f.p.state_kv_in == nullptr &&
              fit_at_once(f, c.plan.sweep.count * c.plan.key_sums_per_segment, 1);
     },
     "the blocks that sum wide heads fit on the device at once"},
    {Launch::kSegmentScan, [](const Facts& /*f*/, const Choice& /*c*/) { return true; },
     "segments start from what lies before them"},
};

// Of sweeps over keys.
constexpr LaunchRule kQueryLaunches[] = {
    {Launch::kSingle, [](const Facts& f, const Choice& /*c*/) { return f.forward(); }, "of the backward pass alone"},
    {Launch::kSingle,
     [](const Facts& /*f*/, const Choice& c) {
       return !c.plan.running && c.family == Family::kNarrow && c.plan.sum_queries.count == 1 &&
              c.plan.sweep_over_keys.count == 1;
     },
     "sequences are not cut: the sweep over queries sums them and goes on to the keys"},
    {Launch::kSumFirst,
     [](const Facts& /*f*/, const Choice& c) { return !c.plan.running && c.plan.sum_queries.count == 1; },
     kFromAllKeys},
    {Launch::kSegmentScan, [](const Facts& /*f*/, const Choice& c) { return !c.plan.running; }, kFromAllKeys},
    {Launch::kSumFirst,
     [](const Facts& /*f*/, const Choice& c) { return c.family == Family::kBothSides && c.plan.sweep.count == 1; },
     "what lies after each pair of chunks is summed first"},
    {Launch::kSegmentScan, [](const Facts& /*f*/, const Choice& c) { return c.family == Family::kBothSides; },
     "what lies after each pair of chunks, and both sums of each segment, are made first"},
    {Launch::kSingle,
     [](const Facts& f, const Choice& c) { return c.plan.sweep.count == 1 && f.g->d_state_kv_out == nullptr; }, kUncut},
    {Launch::kCooperativeScan,
     [](const Facts& f, const Choice& c) {
       return c.family == Family::kWide && f.g->d_state_kv_out == nullptr &&
              fit_at_once(f, c.plan.sweep.count * c.plan.query_sums_per_segment, 1);
     },
     "the blocks that sum wide heads fit on the device at once"},
    {Launch::kSegmentScan, [](const Facts& /*f*/, const Choice& /*c*/) { return true; },
     "segments start from what lies after them"},
};

template <class Rule, std::size_t kCount, class... Arguments>
const Rule& first_that_holds(const Rule (&rules)[kCount], const Arguments&... arguments) {
  return *std::find_if(std::begin(rules), std::end(rules) - 1,
                       [&](const Rule& rule) { return rule.holds(arguments...); });
}

// --- How sequences are cut. By shapes and the family, not by what the device turns out to hold at once.

Plan make_plan(const Facts& f, const Choice& c) {
  const Problem& p = f.p;
  const std::int64_t dim = c.parts.features > 1 ? f.features.columns(0) : p.dim;
  const std::int64_t value_dim = c.parts.values > 1 ? f.values.columns(0) : p.value_dim;
  const std::int64_t heads = f.heads();
  const std::int64_t blocks = heads * std::min(value_slices(dim, value_dim), value_slices(value_dim, dim));
  const bool hopper_shape =
      p.dtype == DType::kBFloat16 && p.feature_map == FeatureMap::kRelu && dim <= kWideDim && value_dim <= kWideDim;
  const bool narrow = hopper_shape && f.narrow(), wide = hopper_shape && !f.narrow();
  Plan plan;
  plan.two_sided = f.two_sided();
  plan.running = p.causal || plan.two_sided;
  plan.longest = std::max(p.q_length, p.k_length);
  plan.slot_floats = state_floats(dim, value_dim);
  plan.query_rows = f.query_rows();
  if (c.family == Family::kBothSides) {  // pairs of chunks, in blocks that fill a multiprocessor
    plan.sweep = cut(plan.longest, heads, kWantedWideBlocks, 4 * kPairTokens, kPairTokens);
    plan.key_slots = plan.query_slots = plan.sweep.count;
  } else if (plan.running) {
    plan.sweep = cut(plan.longest, blocks, wide ? kWantedWideBlocks : kWantedBlocks, 256);
    plan.query_sums_per_segment = wide ? sums_per_segment(plan.sweep, heads, kWantedWideBlocks, 4)
                                       : sums_per_segment(plan.sweep, blocks, kWantedBlocks, 2);
    plan.key_sums_per_segment =
        wide && p.causal ? unsliced_per_segment(plan.sweep, heads) : plan.query_sums_per_segment;
    plan.key_slots = plan.query_slots =
        plan.sweep.count * std::max(plan.query_sums_per_segment, plan.key_sums_per_segment) + 1;
  } else {
    plan.sum_keys = cut(p.k_length, blocks, kWantedBlocks, 512);  // two suffice to keep the memory busy
    // Where the Hopper kernels may serve, narrow heads sum the queries beside their gradient, in heavier blocks.
    plan.sum_queries = cut(p.q_length, blocks, narrow ? kWantedBlocks : kWantedLightBlocks, 512);
    plan.sweep_over_queries = cut(p.q_length, blocks, kWantedLightBlocks, 512);
    plan.sweep_over_keys = cut(p.k_length, blocks, kWantedLightBlocks, 512);
    plan.key_slots = plan.sum_keys.count == 1 ? 1 : plan.sum_keys.count + 1;
    plan.query_slots = plan.sum_queries.count == 1 ? 1 : plan.sum_queries.count + 1;
  }
  return plan;
}

// What the forward pass leaves to the backward pass. Not where sequences are so short that the sums would take up as
// much memory as the keys.
void choose_key_sums(const Facts& f, Choice& c) {
  const Problem& p = f.p;
  const bool useful = c.plan.running ? p.causal && c.plan.sweep.count > 1 : true;
  if (!useful || f.comes_in_parts() || p.keep_key_sums == KeepSums::kNever) return;
  const std::int64_t sums = c.plan.running ? c.plan.key_slots : 1;
  constexpr std::int64_t kKeysPerFeature = 8;
  const std::int64_t keys = f.packed() ? p.total_k : p.sequences * p.k_length;
  if (p.keep_key_sums == KeepSums::kWhereWorthIt && keys < kKeysPerFeature * p.dim * p.sequences * sums) return;
  c.key_sum_floats = f.heads() * sums * c.plan.slot_floats;
  if (c.key_sum_floats == 0) return;
  // In the forward pass of full attention the slots of many segments are in the workspace, and their total is copied.
  c.keys_in_key_sums = c.plan.running || !f.forward() || c.plan.key_slots == 1;
  if (c.keys_in_key_sums && !c.plan.running) c.plan.key_slots = 1;
}

// Room as shapes ask for it, whatever the device turns out to hold at once.
Workspace make_workspace(const Facts& f, const Choice& c) {
  const Problem& p = f.p;
  const Plan& plan = c.plan;
  const std::int64_t heads = f.heads();
  Workspace w;
  const auto take = [&](std::size_t& piece, std::int64_t count, std::size_t size) {
    piece = w.bytes;
    w.bytes += (static_cast<std::size_t>(count) * size + 255) / 256 * 256;
  };
  const bool both_sides = c.family == Family::kBothSides;
  // First what goes from part to part: as long in each, so that it lies at the same places.
  const bool twice = (plan.two_sided && !both_sides) || c.parts.features > 1;
  if (p.normalizer == Normalizer::kSum && (!f.forward() || twice)) {
    take(w.row_scalar, plan.query_rows * p.heads, sizeof(float));
  }
  if (!f.forward() && f.g->d_log_decay != nullptr) {
    const std::int64_t blocks = std::max(2, c.parts.count()) * heads * plan.sweep.count * decay_slices(p, c);
    take(w.query_decay, blocks, sizeof(double));
    take(w.key_decay, blocks, sizeof(double));
    take(w.state_decay, heads, sizeof(double));
  }
  if (both_sides) {
    take(w.states_after_extras, (plan.query_rows / kPairTokens + 1) * kPairTokens * p.heads, sizeof(float));
    if (plan.sweep.count > 1) {  // the keys' and then the queries'
      take(w.key_slots, heads * plan.key_slots * plan.slot_floats, sizeof(float));
      w.query_slots = w.key_slots;
      take(w.states_after_segments, heads * plan.key_slots * plan.slot_floats, sizeof(float));
    }
    return w;
  }
  const bool carried = p.state_kv_in != nullptr || p.state_kv_out != nullptr || f.state_gradients();
  if (plan.running && plan.sweep.count == 1 && !carried) return w;
  const bool cooperative = cooperative_shape(f, c);
  const std::int64_t cooperative_floats =
      cooperative && c.family == Family::kNarrow ? plan.sweep.count * kCooperativeSumFloats : 0;
  if (c.keys_in_key_sums) {
    if (cooperative_floats > 0) take(w.cooperative_sums, heads * cooperative_floats, sizeof(float));
  } else {
    take(w.key_slots, heads * std::max(plan.key_slots * plan.slot_floats, cooperative_floats), sizeof(float));
    w.cooperative_sums = w.key_slots;
  }
  if (cooperative) take(w.segment_flags, heads * plan.key_slots, sizeof(unsigned));
  if (!f.forward()) take(w.query_slots, heads * plan.query_slots * plan.slot_floats, sizeof(float));
  return w;
}

}  // namespace

int decay_slices(const Problem& p, const Choice& c) {
  if (c.family == Family::kGeneral) return value_slices(p.value_dim, p.dim);
  return hopper_slices(HeadSide(p.dim).columns(0));
}

Choice choose(const Problem& problem, const Gradients* gradients, const Device& device) {
  const Facts facts(problem, gradients, device);
  Choice c;
  c.device = device;
  const FamilyRule& family = first_that_holds(kFamilies, facts);
  c.family = family.family;
  c.sums = family.sums;
  c.family_because = family.because;
  if (c.family == Family::kRefused) return c;
  if (c.family == Family::kWide) c.parts = {facts.features.blocks(), facts.values.blocks()};
  c.state_in_registers = c.family == Family::kWide && facts.forward() && problem.causal && c.parts.features == 1;
  const FetchRule& fetch = first_that_holds(kFetches, facts, c);
  c.fetch = fetch.fetch;
  c.fetch_because = fetch.because;
  c.sum_fetch = problem.key_mask != nullptr ? Fetch::kMaskedCpAsync : Fetch::kCpAsync;
  if (c.family == Family::kDecode) return c;
  c.plan = make_plan(facts, c);
  choose_key_sums(facts, c);
  const LaunchRule& keys = first_that_holds(kKeyLaunches, facts, c);
  c.keys = keys.launch;
  c.keys_because = keys.because;
  const LaunchRule& queries = first_that_holds(kQueryLaunches, facts, c);
  c.queries = queries.launch;
  c.queries_because = queries.because;
  c.workspace = make_workspace(facts, c);
  return c;
}

}  // namespace cosformer::kernels::cuda
