#include "serve/session.h"

#include <algorithm>
#include <map>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/safetensors.h"
#include "base/formats/sha256.h"
#include "base/parse_number.h"
#include "nn/tensor_file.h"

namespace cosformer::serve {
namespace {

using Metadata = std::map<std::string, std::string>;

constexpr const char* kVersion = "1";
const std::string kVersionKey = "cosformer.session", kModelKey = "model", kTokenizerKey = "tokenizer",
                  kConsumedKey = "consumed", kSeedKey = "seed", kCachedKey = "cached", kSumKey = "sha256";

// In the caches of a hybrid, which has them in some layers, there are equally many.
std::int64_t cached_tokens(const models::LmState& state) {
  std::int64_t cached = 0;
  for (const nn::LayerState& layer : state.layers) cached = std::max(cached, layer.mechanism.length);
  return cached;
}

nn::NamedTensors tensors_of(const Session& session) {
  nn::NamedTensors tensors = session.state.tensors();
  tensors.emplace_back("logits", session.logits);
  tensors.emplace_back("recent", at::tensor(session.recent, at::kInt));
  return tensors;
}

// Of all metadata but itself, and of all tensors.
std::string sum_of(const Metadata& metadata, const nn::NamedTensors& tensors) {
  Sha256 hash;
  const auto add = [&](const std::string& text) { hash.add(std::to_string(text.size()) + ':' + text); };
  for (const auto& [key, value] : metadata) {
    if (key == kSumKey) continue;
    add(key);
    add(value);
  }
  std::map<std::string, at::Tensor> sorted(tensors.begin(), tensors.end());
  for (const auto& [name, tensor] : sorted) {
    const at::Tensor bytes = tensor.detach().to(at::kCPU).contiguous();
    add(name);
    add(c10::toString(bytes.scalar_type()));
    for (const std::int64_t size : bytes.sizes()) add(std::to_string(size));
    hash.add(bytes.data_ptr(), static_cast<std::size_t>(bytes.nbytes()));
  }
  return hexadecimal(hash.finish());
}

class SessionFile {
 public:
  explicit SessionFile(const std::string& path) : path_(path), file_(path) {}

  [[noreturn]] void refuse(const std::string& reason) const {
    throw UserError(fmt::format("'{}' cannot be continued: {}", path_, reason));
  }

  const std::string& text(const std::string& key) const {
    const auto found = file_.metadata().find(key);
    if (found == file_.metadata().end())
      refuse(fmt::format("it is no session ('{}' is missing from its metadata)", key));
    return found->second;
  }

  template <class Number>
  Number number(const std::string& key, Number most) const {
    const std::string& digits = text(key);
    Number value = 0;
    if (!parse_number(digits, value) || value > most) {
      refuse(fmt::format("it is damaged ('{}' is '{}')", key, digits));
    }
    return value;
  }

  const safetensors::Entry& entry(const std::string& name) const {
    const safetensors::Entry* found = file_.find(name);
    if (found == nullptr) refuse(fmt::format("it is damaged (tensor '{}' is missing)", name));
    return *found;
  }

  const safetensors::Metadata& metadata() const { return file_.metadata(); }

 private:
  std::string path_;
  safetensors::Reader file_;
};

constexpr std::int64_t kMostTokens = std::int64_t{1} << 53;

}  // namespace

void Session::remember(std::span<const std::int32_t> tokens) {
  recent.insert(recent.end(), tokens.begin(), tokens.end());
  if (recent.size() > kRecentTokens) {
    recent.erase(recent.begin(), recent.end() - static_cast<std::ptrdiff_t>(kRecentTokens));
  }
}

void save_session(const std::string& path, const Session& session, const SessionOwner& owner) {
  const nn::NamedTensors tensors = tensors_of(session);
  Metadata metadata{{kVersionKey, kVersion},
                    {kModelKey, owner.model_hash},
                    {kTokenizerKey, owner.tokenizer_hash},
                    {kConsumedKey, std::to_string(session.consumed())},
                    {kSeedKey, std::to_string(session.seed)},
                    {kCachedKey, std::to_string(cached_tokens(session.state))}};
  metadata[kSumKey] = sum_of(metadata, tensors);
  nn::write_tensors(path, tensors, metadata);
}

Session load_session(const std::string& path, const models::LanguageModel& model, const SessionOwner& owner) {
  const SessionFile file(path);
  if (file.text(kVersionKey) != kVersion) {
    file.refuse(fmt::format(
        "it has version '{}' of the format, and this program reads version {}; go on with the program that wrote it",
        file.text(kVersionKey), kVersion));
  }
  // What another model has made may have other tensors; say that first.
  if (file.text(kModelKey) != owner.model_hash) {
    file.refuse("it belongs to another model, or to this one with other weights");
  }
  if (file.text(kTokenizerKey) != owner.tokenizer_hash) file.refuse("it belongs to a model with another tokenizer");
  const auto consumed = file.number<std::int64_t>(kConsumedKey, kMostTokens);
  const auto cached = file.number<std::int64_t>(kCachedKey, consumed);
  if (consumed < 0 || cached < 0) file.refuse("it is damaged (a negative number of tokens)");
  Session session;
  session.seed = file.number<std::uint64_t>(kSeedKey, ~std::uint64_t{0});
  session.state = model.empty_state(1);
  session.state.clock = nn::StreamClock(1, model.device(), consumed);
  const safetensors::Shape& recent_shape = file.entry("recent").shape;
  if (recent_shape.size() != 1 || recent_shape[0] > static_cast<std::int64_t>(Session::kRecentTokens)) {
    file.refuse("it is damaged (the shape of 'recent')");
  }
  const at::Tensor recent = at::zeros({recent_shape[0]}, at::kInt);
  session.logits = at::zeros({model.config().model.input.vocabulary}, at::kFloat);
  session.state.replace([&](const std::string& name, const at::Tensor& like) {
    std::vector<std::int64_t> shape = like.sizes().vec();
    if (models::LmState::is_cache(like)) shape[2] = cached;
    // Room is made only where the file has as much.
    if (file.entry(name).shape != shape) file.refuse(fmt::format("it is damaged (the shape of '{}')", name));
    return at::zeros(shape, like.options());
  });
  if (cached_tokens(session.state) != cached) file.refuse("it is damaged (this model has no cache)");
  nn::NamedTensors tensors = session.state.tensors();
  tensors.emplace_back("logits", session.logits);
  tensors.emplace_back("recent", recent);
  for (const auto& [name, tensor] : tensors) {
    const safetensors::Entry& entry = file.entry(name);
    const char* wanted = tensor.scalar_type() == at::kDouble  ? "F64"
                         : tensor.scalar_type() == at::kFloat ? "F32"
                         : tensor.scalar_type() == at::kInt   ? "I32"
                                                              : "";
    if (safetensors::name_of(entry.dtype) != wanted)
      file.refuse(fmt::format("it is damaged (the dtype of '{}')", name));
  }
  nn::read_tensors(path, tensors);
  const Metadata metadata(file.metadata().begin(), file.metadata().end());
  if (file.text(kSumKey) != sum_of(metadata, tensors)) file.refuse("it is damaged (its checksum does not fit)");
  session.recent.assign(recent.data_ptr<std::int32_t>(), recent.data_ptr<std::int32_t>() + recent.numel());
  // Whoever can change the numbers can change the checksum too: what is used as an index is looked at.
  for (const std::int32_t token : session.recent) {
    if (token < 0 || token >= model.config().model.input.vocabulary)
      file.refuse("it is damaged (the tokens in 'recent')");
  }
  if (session.logits.isnan().any().item<bool>()) file.refuse("it is damaged ('logits' are not numbers)");
  return session;
}

}  // namespace cosformer::serve
