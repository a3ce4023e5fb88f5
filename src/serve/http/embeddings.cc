// /v1/embeddings: what a language model makes of a text, on average over its tokens, as a vector of length 1.
#include <cmath>
#include <mutex>

#include <fmt/core.h>

#include "base/formats/base64.h"
#include "serve/http/completions.h"

namespace cosformer::serve {
namespace {

constexpr std::size_t kMostInputs = 256;

struct Embeddings {
  ExchangePointer exchange;
  std::string model;
  bool as_base64 = false;
  std::vector<std::vector<float>> vectors;
  std::size_t open = 0, tokens = 0;
  std::optional<RequestError> error;
  std::mutex mutex;

  void take(std::size_t at, Outcome outcome) {
    const std::lock_guard lock(mutex);
    if (outcome.error) error = outcome.error;
    if (outcome.cancelled) error = RequestError(503, "overloaded", "the request was cancelled");
    vectors[at] = std::move(outcome.embedding);
    tokens += outcome.prompt_tokens;
    if (--open == 0) send();
  }

  void send() {
    exchange->set_tokens(tokens, 0, 0);
    if (error) return exchange->fail(*error);
    Json answer{{"object", "list"}, {"data", Json::array()}, {"model", model}};
    for (std::size_t at = 0; at < vectors.size(); ++at) {
      double square = 0;
      for (const float x : vectors[at]) square += static_cast<double>(x) * static_cast<double>(x);
      const double length = square > 0 ? std::sqrt(square) : 1;
      for (float& x : vectors[at]) x = static_cast<float>(static_cast<double>(x) / length);
      const std::string_view bytes(reinterpret_cast<const char*>(vectors[at].data()),
                                   vectors[at].size() * sizeof(float));
      answer["data"].push_back({{"object", "embedding"},
                                {"index", at},
                                {"embedding", as_base64 ? Json(to_base64(bytes)) : Json(vectors[at])}});
    }
    answer["usage"] = {{"prompt_tokens", tokens}, {"total_tokens", tokens}};
    exchange->send(200, answer);
  }
};

}  // namespace

void answer_embeddings(const ExchangePointer& exchange, ServedModel& model, const JsonBody& body) {
  const Json* input = body.find("input");
  if (input == nullptr) throw bad_request("'input' is missing; it must be a text, texts or token ids", "input");
  const std::string format = body.optional_text("encoding_format").value_or("float");
  if (format != "float" && format != "base64")
    throw bad_request("'encoding_format' must be float or base64", "encoding_format");
  std::vector<std::vector<std::int32_t>> prompts;
  const bool many = input->is_array() && !input->empty() && !(*input)[0].is_number();
  if (many && input->size() > kMostInputs) {
    throw bad_request(fmt::format("'input' may have {} texts; got {}", kMostInputs, input->size()), "input");
  }
  if (many) {
    for (const Json& each : *input) prompts.push_back(prompt_of(each, model, "input"));
  } else {
    prompts.push_back(prompt_of(*input, model, "input"));
  }
  for (const auto& prompt : prompts) {
    if (prompt.empty()) throw bad_request("'input' must not be empty", "input");
  }
  const auto all = std::make_shared<Embeddings>();
  all->exchange = exchange;
  all->model = model.id;
  all->as_base64 = format == "base64";
  all->vectors.resize(prompts.size());
  all->open = prompts.size() + 1;  // and this function
  std::vector<std::shared_ptr<Ticket>> tickets;
  std::optional<RequestError> refused;
  std::size_t at = 0;
  for (; at < prompts.size() && !refused; ++at) {
    GenerationRequest request;
    request.prompt = std::move(prompts[at]);
    request.embeds = true;
    try {
      tickets.push_back(model.engine->submit(
          std::move(request), {{}, {}, [all, at](Outcome outcome) { all->take(at, std::move(outcome)); }}));
    } catch (const RequestError& error) {
      refused = error;
    }
  }
  const auto cancel = [tickets, &engine = *model.engine] {
    for (const auto& ticket : tickets) ticket->cancel();
    engine.wake();
  };
  const std::lock_guard lock(all->mutex);
  if (refused) {
    all->error = refused;
    all->open -= prompts.size() - tickets.size();
    cancel();
  } else {
    exchange->reply()->on_gone(cancel);
  }
  if (--all->open == 0) all->send();
}

}  // namespace cosformer::serve
