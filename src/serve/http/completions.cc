#include "serve/http/completions.h"

#include <random>

#include <fmt/core.h>

#include "base/formats/base64.h"
#include "base/formats/utf8.h"
#include "serve/http/session_bytes.h"

namespace cosformer::serve {
namespace {

constexpr std::int64_t kMostChoices = 128;

std::uint64_t random_seed() {
  std::random_device random;
  return (std::uint64_t{random()} << 32U) | random();
}

SamplingOptions sampling_of(const JsonBody& body) {
  SamplingOptions sampling;
  sampling.temperature = body.number("temperature", 1, 0, 1e6);
  sampling.top_p = body.number("top_p", 1, 0, 1);
  if (sampling.top_p == 0) throw bad_request("'top_p' must be above 0", "top_p");
  sampling.top_k = body.whole("top_k", 0, 0, std::int64_t{1} << 31);
  sampling.min_p = body.number("min_p", 0, 0, 1);
  sampling.repetition_penalty = body.number("repetition_penalty", 1, 1e-3, 1e3);
  return sampling;
}

std::string token_text(const data::Tokenizer& tokenizer, std::int32_t token) {
  std::string text;
  tokenizer.append_text(token, data::Tokenizer::kNothing, text);
  return text.empty() || !is_utf8(text) ? tokenizer.token_name(token) : text;
}

// One request from its JSON to the last piece of its answer. The engine's thread calls it.
class Completion : public std::enable_shared_from_this<Completion> {
 public:
  Completion(ExchangePointer exchange, ServedModel& model, const JsonBody& body, std::int64_t most_tokens);
  void submit();

 private:
  struct Choice {
    std::string text;
    Json tokens = Json::array(), chances = Json::array(), likeliest = Json::array(), offsets = Json::array();
    std::string reason;
    std::size_t length = 0;
  };

  void take_text(const JsonBody& body);
  void token(std::size_t at, std::string_view text, const TokenChance& chance);
  void choice_end(std::size_t at, std::string_view rest, TextEnd ended_by);
  void end(Outcome outcome);
  Json frame() const;
  Json logprobs_of(Choice& choice) const;
  void send_piece(std::size_t at, const std::string& text, bool is_last);
  void return_session(const Outcome& outcome);

  ExchangePointer exchange_;
  ServedModel& model_;
  GenerationRequest request_;
  std::string id_, session_, echoed_;
  std::int64_t created_;
  bool stream_, usage_, echo_, return_state_, tells_chances_, first_ = true;
  std::vector<Choice> choices_;
};

Completion::Completion(ExchangePointer exchange, ServedModel& model, const JsonBody& body, std::int64_t most_tokens)
    : exchange_(std::move(exchange)),
      model_(model),
      id_(fmt::format("cmpl-{:016x}", random_seed())),
      created_(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
                   .count()),
      stream_(body.flag("stream")),
      echo_(body.flag("echo")),
      return_state_(body.flag("return_state")) {
  const Json* options = body.find("stream_options");
  if (options != nullptr && !options->is_object())
    throw bad_request("'stream_options' must be an object", "stream_options");
  usage_ = options != nullptr && options->contains("include_usage") && (*options)["include_usage"] == Json(true);
  request_.writing.sampling = sampling_of(body);
  request_.writing.max_tokens = body.whole("max_tokens", 16, 0, most_tokens);
  request_.writing.stops = body.texts("stop", 16);
  request_.writing.past_end = body.flag("past_end");
  request_.choices = static_cast<std::size_t>(body.whole("n", 1, 1, kMostChoices));
  request_.likeliest = static_cast<int>(body.whole("logprobs", -1, 0, 20));
  tells_chances_ = request_.likeliest >= 0;
  if (echo_ && request_.likeliest >= 0)
    throw bad_request("'logprobs' of an echoed prompt are not told; leave 'echo' out", "echo");
  if (const Json* prompt = body.find("prompt")) {
    request_.prompt = prompt_of(*prompt, model_, "prompt");
    if (echo_) {
      data::Utf8Filter whole;
      echoed_ = whole.push(model_.tokenizer->decode(request_.prompt));
      echoed_ += whole.finish();
    }
  }
  if (body.has("seed")) {
    const Json& seed = *body.find("seed");
    if (!seed.is_number_integer()) throw bad_request("'seed' must be a whole number", "seed");
    request_.seed =
        seed.is_number_unsigned() ? seed.get<std::uint64_t>() : static_cast<std::uint64_t>(seed.get<std::int64_t>());
  }
  choices_.resize(request_.choices);
  take_text(body);
  if (!request_.from && !request_.seed) request_.seed = random_seed();
}

// The text that is gone on with: a session's, or one that the client has brought along.
void Completion::take_text(const JsonBody& body) {
  const std::optional<std::string> session = body.optional_text("session"), state = body.optional_text("state");
  if (session && state) throw bad_request("give either 'session' or 'state'", "state");
  request_.keeps_session = session || return_state_;
  request_.writing.is_continued = request_.keeps_session;
  if (request_.keeps_session && request_.choices > 1)
    throw bad_request("a session goes on in one way: 'n' must be 1", "n");
  if (state) request_.from = session_from_base64(*state, model_.engine->generator(), model_.sessions->owner());
  if (session) {
    request_.from = model_.sessions->take(*session);  // last: nothing may go wrong from here to submit()
    session_ = *session;
  }
}

void Completion::submit() {
  const auto self = shared_from_this();
  Callbacks callbacks{
      [self](std::size_t at, std::string_view text, const TokenChance& chance) { self->token(at, text, chance); },
      [self](std::size_t at, std::string_view rest, TextEnd ended_by) { self->choice_end(at, rest, ended_by); },
      [self](Outcome outcome) { self->end(std::move(outcome)); }};
  try {
    const std::shared_ptr<Ticket> ticket = model_.engine->submit(std::move(request_), std::move(callbacks));
    Engine& engine = *model_.engine;
    exchange_->reply()->on_gone([ticket, &engine] {
      ticket->cancel();
      engine.wake();
    });
  } catch (...) {
    if (!session_.empty()) model_.sessions->release(session_);
    throw;
  }
}

Json Completion::frame() const {
  return {{"id", id_}, {"object", "text_completion"}, {"created", created_}, {"model", model_.id}};
}

Json Completion::logprobs_of(Choice& choice) const {
  if (choice.tokens.empty()) return nullptr;
  Json all{{"tokens", std::move(choice.tokens)},
           {"token_logprobs", std::move(choice.chances)},
           {"top_logprobs", std::move(choice.likeliest)},
           {"text_offset", std::move(choice.offsets)}};
  choice.tokens = choice.chances = choice.likeliest = choice.offsets = Json::array();
  return all;
}

void Completion::send_piece(std::size_t at, const std::string& text, bool is_last) {
  if (!exchange_->streams()) exchange_->begin_events();
  Json piece = frame();
  Choice& choice = choices_[at];
  piece["choices"] = Json::array({{{"index", at},
                                   {"text", text},
                                   {"logprobs", logprobs_of(choice)},
                                   {"finish_reason", is_last ? Json(choice.reason) : Json()}}});
  exchange_->event(piece);
}

void Completion::token(std::size_t at, std::string_view text, const TokenChance& chance) {
  if (std::exchange(first_, false)) exchange_->metrics().observe_first_token(model_.id, exchange_->seconds());
  Choice& choice = choices_[at];
  if (choice.length == 0 && echo_ && choice.text.empty()) {
    choice.text = echoed_;
    if (stream_) send_piece(at, echoed_, false);
  }
  if (tells_chances_) {
    choice.tokens.push_back(token_text(*model_.tokenizer, chance.token));
    choice.chances.push_back(chance.log_probability);
    Json likeliest = Json::object();
    for (const auto& [token, log_probability] : chance.likeliest) {
      likeliest[token_text(*model_.tokenizer, token)] = log_probability;
    }
    choice.likeliest.push_back(std::move(likeliest));
    choice.offsets.push_back(choice.length);
  }
  choice.length += text.size();
  if (!stream_) {
    choice.text += text;
  } else if (!text.empty() || !choice.tokens.empty()) {
    send_piece(at, std::string(text), false);
  }
}

void Completion::choice_end(std::size_t at, std::string_view rest, TextEnd ended_by) {
  Choice& choice = choices_[at];
  if (choice.length == 0 && echo_ && choice.text.empty()) {  // nothing was written
    choice.text = echoed_;
    if (stream_) send_piece(at, echoed_, false);
  }
  choice.reason = ended_by == TextEnd::kEndOfDocument || ended_by == TextEnd::kStop ? "stop" : "length";
  if (stream_) return send_piece(at, std::string(rest), true);
  choice.text += rest;
}

void Completion::return_session(const Outcome& outcome) {
  if (session_.empty()) return;
  if (outcome.session) {
    model_.sessions->give_back(session_, *outcome.session);
  } else {
    model_.sessions->release(session_);
  }
}

void Completion::end(Outcome outcome) {
  try {
    return_session(outcome);
    exchange_->set_tokens(outcome.prompt_tokens, outcome.cached_tokens, outcome.completion_tokens);
    if (outcome.error) return exchange_->fail(*outcome.error);
    if (outcome.cancelled) return exchange_->fail({503, "overloaded", "the request was cancelled"});
    const Json usage{{"prompt_tokens", outcome.prompt_tokens},
                     {"completion_tokens", outcome.completion_tokens},
                     {"total_tokens", outcome.prompt_tokens + outcome.completion_tokens},
                     {"prompt_tokens_details", {{"cached_tokens", outcome.cached_tokens}}}};
    Json answer = frame();
    answer["choices"] = Json::array();
    if (return_state_ && outcome.session)
      answer["state"] = session_to_base64(*outcome.session, model_.sessions->owner());
    if (stream_) {
      if (usage_) answer["usage"] = usage;
      if (usage_ || answer.contains("state")) exchange_->event(answer);
      return exchange_->end_events();
    }
    for (std::size_t at = 0; at < choices_.size(); ++at) {
      answer["choices"].push_back({{"text", choices_[at].text},
                                   {"index", at},
                                   {"logprobs", logprobs_of(choices_[at])},
                                   {"finish_reason", choices_[at].reason}});
    }
    answer["usage"] = usage;
    exchange_->send(200, answer);
  } catch (const RequestError& error) {
    exchange_->fail(error);
  } catch (const std::exception& error) {
    exchange_->fail({500, "server_error", error.what()});
  }
}

}  // namespace

std::vector<std::int32_t> prompt_of(const Json& prompt, const ServedModel& model, const std::string& param) {
  if (prompt.is_string()) return model.tokenizer->encode(prompt.get_ref<const std::string&>());
  if (prompt.is_array() && prompt.size() == 1 && !prompt[0].is_number()) return prompt_of(prompt[0], model, param);
  if (!prompt.is_array()) throw bad_request(fmt::format("'{}' must be a text or token ids", param), param);
  return tokens_of(prompt, model.tokenizer->vocabulary(), param);
}

void answer_completion(const ExchangePointer& exchange, ServedModel& model, const JsonBody& body,
                       std::int64_t most_tokens) {
  std::make_shared<Completion>(exchange, model, body, most_tokens)->submit();
}

Json json_of(const SessionInfo& session, const ServedModel& model) {
  Json snapshots = Json::array();
  for (const std::int64_t position : session.snapshots) snapshots.push_back({{"position", position}});
  return {{"id", session.id},
          {"object", "session"},
          {"model", model.id},
          {"tokens", session.tokens},
          {"state_bytes", session.state_bytes},
          {"softmax_cache_bytes", static_cast<std::uint64_t>(session.tokens) * model.softmax_cache_bytes_per_token},
          {"created", session.created},
          {"last_used", session.last_used},
          {"saved", session.saved},
          {"snapshots", std::move(snapshots)},
          {"text_tail", session.text_tail}};
}

void read_into(const ExchangePointer& exchange, ServedModel& model, std::optional<Session> from,
               const std::string& content, std::function<void(Session)> done, std::function<void()> failed) {
  GenerationRequest request;
  request.prompt = model.tokenizer->encode(content);
  if (!from) request.seed = 0;
  request.from = std::move(from);
  request.writing.max_tokens = 0;
  request.writing.is_continued = request.keeps_session = true;
  const auto end = [exchange, done = std::move(done), failed](Outcome outcome) {
    exchange->set_tokens(outcome.prompt_tokens, outcome.cached_tokens, 0);
    try {
      if (outcome.error) throw RequestError(*outcome.error);
      if (outcome.cancelled || !outcome.session) throw RequestError(503, "overloaded", "the request was cancelled");
      return done(std::move(*outcome.session));
    } catch (const RequestError& error) {
      exchange->fail(error);
    } catch (const std::exception& error) {
      exchange->fail({500, "server_error", error.what()});
    }
    if (failed) failed();
  };
  const std::shared_ptr<Ticket> ticket = model.engine->submit(std::move(request), {{}, {}, end});
  exchange->reply()->on_gone([ticket, &engine = *model.engine] {
    ticket->cancel();
    engine.wake();
  });
}

}  // namespace cosformer::serve
