#include "nn/mechanisms/sparse/block_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

namespace cosformer::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Scores in flight. On a CPU they should stay near its caches; a GPU wants few large launches.
constexpr std::int64_t kScoresOnCpu = std::int64_t{1} << 20, kScoresOnGpu = std::int64_t{1} << 26;

at::ScalarType at_least_float(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

// [..., T, D] → [product of the others, blocks, block, D], zeros after the end.
at::Tensor in_blocks(const at::Tensor& x, std::int64_t block, at::ScalarType type) {
  const std::int64_t time = x.size(-2), dim = x.size(-1), blocks = blocks_in(time, block);
  if (blocks * block == time) return x.to(type).reshape({-1, blocks, block, dim});
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape[shape.size() - 2] = blocks * block;
  const at::Tensor padded = at::empty(shape, x.options().dtype(type));
  padded.narrow(-2, 0, time).copy_(x);
  padded.narrow(-2, time, blocks * block - time).zero_();
  return padded.view({-1, blocks, block, dim});
}

at::Tensor positions(std::int64_t time, c10::Device device) {
  return at::arange(time, at::TensorOptions(at::kInt).device(device)).view({1, time, 1});
}

// Some query blocks of some groups, whole groups where they fit.
struct Chunk {
  std::int64_t group = 0, groups = 0, block = 0, blocks = 0;

  // Of [1 or G, blocks, ...].
  at::Tensor of(const at::Tensor& x) const {
    return (x.size(0) == 1 ? x : x.narrow(0, group, groups)).narrow(1, block, blocks);
  }
};

// One call's tensors in blocks, and what is done with a chunk of them in both directions.
class Work {
 public:
  Work(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const BlockPattern& p)
      : pattern_(p), sum_type_(at_least_float(q.scalar_type())) {
    // CPUs multiply float32 fastest.
    const at::ScalarType type = q.device().is_cpu() ? sum_type_ : q.scalar_type();
    scale_ = 1 / std::sqrt(static_cast<double>(q.size(-1)));
    q_ = in_blocks(q, p.query_block, type);
    k_ = in_blocks(k, p.key_block, type);
    v_ = in_blocks(v, p.key_block, type);
    const auto present =
        p.key_present.defined() ? p.key_present : at::ones({1, k.size(-2)}, k.options().dtype(at::kBool));
    key_present_ = in_blocks(present.unsqueeze(-1), p.key_block, at::kBool);
    if (p.rule) {
      const auto tags = [&](const at::Tensor& given, std::int64_t time, std::int64_t block) {
        return in_blocks(given.defined() ? given : positions(time, q.device()), block, at::kInt);
      };
      query_tags_ = tags(p.query_tags, q.size(-2), p.query_block);
      key_tags_ = tags(p.key_tags, k.size(-2), p.key_block);
    }
    TORCH_CHECK(p.key_blocks.dim() == 3 && p.key_blocks.size(1) == q_.size(1),
                "block_attention: key_blocks must list the key blocks of ", q_.size(1), " query blocks; got ",
                p.key_blocks.sizes());
  }

  std::int64_t keys() const { return pattern_.key_blocks.size(2) * pattern_.key_block; }
  at::Tensor rows(const Chunk& c, const at::Tensor& x) const {
    return c.of(x).reshape({c.groups * c.blocks, x.size(2), x.size(3)});
  }
  at::Tensor queries(const Chunk& c) const { return rows(c, q_); }
  at::Tensor keys(const Chunk& c) const { return listed(c, k_).view({-1, keys(), k_.size(3)}); }
  at::Tensor values(const Chunk& c) const { return listed(c, v_).view({-1, keys(), v_.size(3)}); }

  template <class Function>
  void for_each_chunk(Function function) const {
    const std::int64_t most = q_.device().is_cpu() ? kScoresOnCpu : kScoresOnGpu;
    const std::int64_t all = q_.size(0), blocks = q_.size(1);
    // The gathered keys and values count as well.
    const std::int64_t per_block = std::max(pattern_.query_block, k_.size(3) + v_.size(3)) * keys();
    const std::int64_t groups_at_once = std::clamp<std::int64_t>(most / (per_block * blocks), 1, all);
    const std::int64_t blocks_at_once =
        groups_at_once > 1 ? blocks : std::clamp<std::int64_t>(most / per_block, 1, blocks);
    for (std::int64_t g = 0; g < all; g += groups_at_once) {
      for (std::int64_t b = 0; b < blocks; b += blocks_at_once) {
        function(Chunk{g, std::min(groups_at_once, all - g), b, std::min(blocks_at_once, blocks - b)});
      }
    }
  }

  // [groups · blocks, query_block, keys], −∞ where nothing is to be seen.
  at::Tensor scores(const Chunk& c, const at::Tensor& q, const at::Tensor& k) const {
    at::Tensor s = at::bmm(q, k.transpose(1, 2)).to(sum_type_).mul_(scale_);
    at::Tensor by_group = s.view({c.groups, c.blocks, pattern_.query_block, keys()});
    const at::Tensor listed_absent = c.of(pattern_.key_blocks).lt(0).unsqueeze(-1);
    const at::Tensor present = listed(c, key_present_).squeeze(-1).logical_and(listed_absent.logical_not());
    by_group.masked_fill_(present.logical_not().view({present.size(0), c.blocks, 1, keys()}), -kInfinity);
    if (pattern_.rule) {
      const at::Tensor key_tags = listed(c, key_tags_);
      pattern_.rule(by_group, c.of(query_tags_).unsqueeze(3),
                    key_tags.view({key_tags.size(0), c.blocks, 1, keys(), key_tags_.size(3)}));
    }
    return s;
  }

  // Adds rows of a chunk's listed keys to the blocks they came from; `table` is [G · key blocks, key_block · D].
  void add_listed(const Chunk& c, const at::Tensor& table, const at::Tensor& x) const {
    const at::Tensor from = x.to(sum_type_).view({-1, table.size(1)});
    const at::Tensor to = places(c, k_).flatten();
    // Both add in an order that does not change from run to run.
    if (table.device().is_cpu()) {
      table.index_add_(0, to, from);
    } else {
      table.index_put_({to}, from, true);
    }
  }

  at::Tensor key_table(std::int64_t dim) const {
    return at::zeros({k_.size(0) * k_.size(1), k_.size(2) * dim}, k_.options().dtype(sum_type_));
  }

  at::ScalarType sum_type() const { return sum_type_; }
  at::ScalarType product_type() const { return q_.scalar_type(); }
  double scale() const { return scale_; }

 private:
  // Row numbers of listed blocks in a table [1 or G, key blocks, ...]: [groups or 1, blocks, L].
  at::Tensor places(const Chunk& c, const at::Tensor& table) const {
    const at::Tensor numbers = c.of(pattern_.key_blocks).clamp_min(0);
    if (table.size(0) == 1) return numbers;
    const at::Tensor first = at::arange(c.group, c.group + c.groups, numbers.options()) * table.size(1);
    return numbers + first.view({c.groups, 1, 1});
  }

  // [groups or 1, blocks, L, key_block, D] of a table [1 or G, key blocks, key_block, D].
  at::Tensor listed(const Chunk& c, const at::Tensor& table) const {
    const at::Tensor from = places(c, table);
    const at::Tensor flat = table.reshape({-1, table.size(2) * table.size(3)});
    return flat.index_select(0, from.flatten())
        .view({from.size(0), from.size(1), from.size(2), table.size(2), table.size(3)});
  }

  const BlockPattern& pattern_;
  at::ScalarType sum_type_;
  double scale_ = 1;
  at::Tensor q_, k_, v_, key_present_, query_tags_, key_tags_;
};

// [G, blocks, block, D] → [B, H, T, D].
at::Tensor out_of_blocks(const at::Tensor& x, at::IntArrayRef batch_heads_time, std::int64_t dim) {
  return x.reshape({batch_heads_time[0], batch_heads_time[1], -1, dim}).narrow(2, 0, batch_heads_time[2]);
}

PartialAttention block_attention_fwd(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const BlockPattern& p) {
  const Work work(q, k, v, p);
  const std::int64_t groups = q.size(0) * q.size(1), blocks = p.key_blocks.size(1);
  const at::Tensor out = at::empty({groups, blocks, p.query_block, v.size(3)}, v.options());
  const at::Tensor lse = at::empty({groups, blocks, p.query_block, 1}, v.options().dtype(work.sum_type()));
  work.for_each_chunk([&](const Chunk& c) {
    at::Tensor s = work.scores(c, work.queries(c), work.keys(c));
    at::Tensor most = s.amax(-1, true);
    most.masked_fill_(most.eq(-kInfinity), 0);
    s.sub_(most).exp_();
    const at::Tensor sum = s.sum(-1, true);  // at least 1, or 0 where nothing is seen
    const at::Tensor o = at::bmm(s.to(work.product_type()), work.values(c)) / sum.clamp_min(0.5);
    const auto place = [&](const at::Tensor& x) { return c.of(x); };
    place(out).copy_(o.view_as(place(out)));
    place(lse).copy_((most + sum.log()).view_as(place(lse)));
  });
  return {out_of_blocks(out, q.sizes(), v.size(3)), out_of_blocks(lse, q.sizes(), 1).squeeze(-1)};
}

variable_list block_attention_bwd(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const PartialAttention& result, const at::Tensor& dout, const at::Tensor& dlse,
                                  const BlockPattern& p) {
  const Work work(q, k, v, p);
  const at::ScalarType sums = work.sum_type(), products = work.product_type();
  const at::Tensor lse =
      in_blocks(result.lse.masked_fill(result.lse.eq(-kInfinity), 0).unsqueeze(-1), p.query_block, sums);
  const at::Tensor delta =
      in_blocks((dout.to(sums) * result.out.to(sums)).sum(-1, true) - dlse.to(sums).unsqueeze(-1), p.query_block, sums);
  const at::Tensor d_out = in_blocks(dout, p.query_block, products);
  const at::Tensor dq = at::empty({d_out.size(0), d_out.size(1), p.query_block, q.size(3)}, q.options());
  const at::Tensor dk = work.key_table(k.size(3)), dv = work.key_table(v.size(3));
  work.for_each_chunk([&](const Chunk& c) {
    const at::Tensor qc = work.queries(c), kc = work.keys(c), d_out_c = work.rows(c, d_out);
    const at::Tensor weights = work.scores(c, qc, kc).sub_(work.rows(c, lse)).exp_();
    work.add_listed(c, dv, at::bmm(weights.to(products).transpose(1, 2), d_out_c));
    const at::Tensor d_weights = at::bmm(d_out_c, work.values(c).transpose(1, 2)).to(sums);
    const at::Tensor d_scores = d_weights.sub_(work.rows(c, delta)).mul_(weights).mul_(work.scale()).to(products);
    const at::Tensor dq_c = c.of(dq);
    dq_c.copy_(at::bmm(d_scores, kc).view_as(dq_c));
    work.add_listed(c, dk, at::bmm(d_scores.transpose(1, 2), qc));
  });
  return {out_of_blocks(dq, q.sizes(), q.size(3)), out_of_blocks(dk, k.sizes(), k.size(3)).to(k.scalar_type()),
          out_of_blocks(dv, v.sizes(), v.size(3)).to(v.scalar_type())};
}

// Every product's type is chosen above; autocast must not choose again.
class Undispatched {
 private:
  at::AutoDispatchBelowADInplaceOrView below_;
  c10::impl::ExcludeDispatchKeyGuard no_autocast_{c10::autocast_dispatch_keyset};
};

struct BlockAttentionBackward : torch::autograd::Function<BlockAttentionBackward> {
  static variable_list forward(AutogradContext*, const at::Tensor& dout, const at::Tensor& dlse, const at::Tensor& q,
                               const at::Tensor& k, const at::Tensor& v, const PartialAttention& result,
                               const BlockPattern& pattern) {
    const Undispatched guard;
    return block_attention_bwd(q, k, v, result, dout, dlse, pattern);
  }

  static variable_list backward(AutogradContext*, const variable_list&) {
    TORCH_CHECK(false, "block attention: double backward is not supported; call backward without create_graph=True");
  }
};

struct PatternHolder : torch::CustomClassHolder {
  explicit PatternHolder(BlockPattern p) : pattern(std::move(p)) {}
  BlockPattern pattern;
};

struct BlockAttention : torch::autograd::Function<BlockAttention> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const BlockPattern& pattern) {
    const Undispatched guard;
    const PartialAttention result = block_attention_fwd(q, k, v, pattern);
    ctx->save_for_backward({q, k, v, result.out, result.lse});
    ctx->saved_data["pattern"] = c10::IValue::make_capsule(c10::make_intrusive<PatternHolder>(pattern));
    return {result.out, result.lse};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto holder = c10::static_intrusive_pointer_cast<PatternHolder>(ctx->saved_data["pattern"].toCapsule());
    variable_list d = BlockAttentionBackward::apply(grads[0], grads[1], saved[0], saved[1], saved[2],
                                                    PartialAttention{saved[3], saved[4]}, holder->pattern);
    d.emplace_back();
    return d;
  }
};

}  // namespace

PartialAttention block_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const BlockPattern& pattern) {
  const at::ScalarType type = v.scalar_type();
  const variable_list results = BlockAttention::apply(q.to(type), k.to(type), v, pattern);
  return {results[0], results[1]};
}

at::Tensor mask_per_head(const at::Tensor& key_mask, std::int64_t heads) {
  if (!key_mask.defined()) return {};
  const std::int64_t batch = key_mask.size(0), time = key_mask.size(1);
  return key_mask.unsqueeze(1).expand({batch, heads, time}).reshape({batch * heads, time});
}

at::Tensor attend_in_blocks(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& key_mask,
                            BlockPattern pattern) {
  pattern.key_present = mask_per_head(key_mask, k.size(2));
  return block_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), pattern).out.transpose(1, 2);
}

at::Tensor attend_to_all(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& key_mask) {
  BlockPattern pattern;
  pattern.query_block = q.size(1);
  pattern.key_block = k.size(1);
  pattern.key_blocks = at::zeros({1, 1, 1}, q.options().dtype(at::kLong));
  return attend_in_blocks(q, k, v, key_mask, std::move(pattern));
}

at::Tensor merge(const std::vector<PartialAttention>& parts) {
  std::vector<at::Tensor> outs, sums;
  for (const PartialAttention& part : parts) {
    outs.push_back(part.out);
    sums.push_back(part.lse);
  }
  const at::Tensor lse = at::stack(sums);
  at::Tensor most = lse.detach().amax(0, true);
  most = most.masked_fill(most.eq(-kInfinity), 0);
  const at::Tensor weights = (lse - most).exp();
  const at::Tensor shares = weights / weights.sum(0, true).clamp_min(0.5);
  const at::Tensor merged = (at::stack(outs).to(shares.scalar_type()) * shares.unsqueeze(-1)).sum(0);
  return merged.to(parts.front().out.scalar_type());
}

}  // namespace cosformer::nn
