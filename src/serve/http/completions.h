// /v1/completions of a language model, and what else its engine is asked through JSON.
#pragma once

#include "serve/http/exchange.h"
#include "serve/http/served_model.h"

namespace cosformer::serve {

void answer_completion(const ExchangePointer& exchange, ServedModel& model, const JsonBody& body,
                       std::int64_t most_tokens);
void answer_embeddings(const ExchangePointer& exchange, ServedModel& model, const JsonBody& body);

// The tokens of 'prompt' or 'input': a text, or token ids.
std::vector<std::int32_t> prompt_of(const Json& prompt, const ServedModel& model, const std::string& param);

// A session as a client sees it.
Json json_of(const SessionInfo& session, const ServedModel& model);

// Adds `content` to a text, whose session `done` is then given; an error is answered.
void read_into(const ExchangePointer& exchange, ServedModel& model, std::optional<Session> from,
               const std::string& content, std::function<void(Session)> done, std::function<void()> failed = {});

}  // namespace cosformer::serve
