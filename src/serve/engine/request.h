// What the engine is asked for, and what it tells while it works.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/session.h"
#include "serve/text_writer.h"

namespace cosformer::serve {

// What is wrong with a request, as a client is told it.
struct RequestError : std::runtime_error {
  RequestError(int status_code, std::string kind, const std::string& message, std::string parameter = "")
      : std::runtime_error(message), status(status_code), type(std::move(kind)), param(std::move(parameter)) {}
  int status;
  std::string type, param;
};

struct GenerationRequest {
  std::vector<std::int32_t> prompt;
  std::optional<Session> from;        // the text that the prompt is added to; nothing: one that begins with it
  std::optional<std::uint64_t> seed;  // of the first choice, the next has the next one; nothing: the session's
  std::size_t choices = 1;            // continuations of the same prompt
  WritingOptions writing;
  int likeliest = -1;          // tell each token's probability beside those of so many of the likeliest; −1: no
  bool keeps_session = false;  // the first choice's session is wanted
  bool embeds = false;         // nothing is written: what the model makes of the prompt, on average over its tokens
};

struct TokenChance {
  std::int32_t token = 0;
  double log_probability = 0;  // by the model alone, before temperature and filters
  std::vector<std::pair<std::int32_t, double>> likeliest;
};

struct Outcome {
  std::optional<RequestError> error;
  bool cancelled = false;
  std::size_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  std::optional<Session> session;  // where it was asked for: also of a request that was cancelled while it wrote
  std::vector<float> embedding;
};

// All are called on the engine's thread, one at a time, `end` once and last.
struct Callbacks {
  // The text that has become certain with this token, which may be none.
  std::function<void(std::size_t choice, std::string_view text, const TokenChance& chance)> token;
  std::function<void(std::size_t choice, std::string_view rest, TextEnd ended_by)> choice_end;
  std::function<void(Outcome outcome)> end;
};

// Of a request that was accepted. Whoever cancels it still hears its end.
class Ticket {
 public:
  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }

 private:
  std::atomic<bool> cancelled_ = false;
};

}  // namespace cosformer::serve
