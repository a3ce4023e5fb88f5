#include "models/model_size.h"

#include <algorithm>

#include <fmt/core.h>
#include <unistd.h>

#include "base/error.h"
#include "base/table.h"
#include "models/layer_pattern.h"

namespace cosformer::models {
namespace {

// Of what there is exactly one of, whichever the mechanism: the rest is small beside it, but for these.
double numbers_of_mechanism(const nn::AttentionConfig& a, double heads, double length) {
  if (a.name == "synthesizer") return a.variant == "random" ? heads * length * length : heads * length;
  if (a.name == "linformer") return std::min(static_cast<double>(a.rank), length) * length;
  return 0;
}

}  // namespace

ModelSize size_of(const ModelConfig& c, std::int64_t layers, bool embeds) {
  const double width = static_cast<double>(c.width), blocks = static_cast<double>(layers),
               length = static_cast<double>(c.input.max_length);
  const double head_dim = static_cast<double>(c.head_dim > 0 ? c.head_dim : c.width / c.heads);
  const double inner = static_cast<double>(c.heads) * head_dim;
  ModelSize size;
  size.parameters = blocks * (2 * width * inner + 2 * width * static_cast<double>(c.feed_forward));
  double turned = blocks;  // layers with rotary positions
  // Blocks beyond the encoder's may have another mechanism.
  for (const nn::AttentionConfig& attention : layer_attentions(c)) {
    size.parameters += numbers_of_mechanism(attention, static_cast<double>(c.heads), length);
    if (!has_positions(c, attention)) --turned;
  }
  if (embeds) size.parameters += width * static_cast<double>(c.input.vocabulary);
  if (c.positions == "learned") size.parameters += width * length;
  if (c.positions == "sinusoidal") size.tables += width * length;
  if (c.positions == "rotary") size.tables += turned * head_dim * length;
  return size;
}

void require_memory(const ModelConfig& c, const ModelSize& size) {
  constexpr double kBytes = 4;
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  const double needed = kBytes * (size.parameters + size.tables);
  if (memory <= 0 || needed <= memory) return;
  throw UserError(
      fmt::format("settings: the weights and tables of this model take {}, more than this machine's {} of memory; "
                  "choose smaller model.layers ({}), model.width ({}), model.heads ({}), model.feed_forward ({}), "
                  "vocabulary ({}) or data.max_length ({})",
                  human_bytes(needed), human_bytes(memory), c.layers, c.width, c.heads, c.feed_forward,
                  c.input.vocabulary, c.input.max_length));
}

void require_numbers(const safetensors::Reader& file, const ModelSize& size) {
  double there = 0;
  for (const safetensors::Entry& entry : file.entries()) {
    there += static_cast<double>(entry.size() / safetensors::size_of(entry.dtype));
  }
  if (size.parameters <= there) return;
  throw UserError(fmt::format(
      "'{}' is damaged: its metadata describe a model of at least {} parameters, and it holds {}; copy it again",
      file.path(), significant(size.parameters), significant(there)));
}

}  // namespace cosformer::models
