#include "serve/http/service.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/sha256.h"
#include "serve/http/asking.h"
#include "serve/http/completions.h"
#include "serve/http/openapi.h"
#include "serve/http/page_files.h"

namespace cosformer::serve {
namespace {

// Takes as long wherever they differ, and whatever their lengths.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  const Sha256::Digest x = sha256(a), y = sha256(b);
  unsigned difference = 0;
  for (std::size_t at = 0; at < x.size(); ++at) difference |= static_cast<unsigned>(x[at] ^ y[at]);
  return difference == 0;
}

bool starts_with(const std::string& text, std::string_view beginning) {
  return std::string_view(text).substr(0, beginning.size()) == beginning;
}

RequestError no_such_path() {
  return {404, "not_found", "there is no such path; /openapi.json lists those that there are"};
}

void require_method(const HttpRequest& request, const std::string& method) {
  if (request.method == method || (method == "GET" && request.method == "HEAD")) return;
  throw RequestError(405, "invalid_request_error", fmt::format("this path is asked with {}", method));
}

HttpResponse file_response(const PageFile& file, const std::string& if_none_match) {
  HttpResponse response;
  response.headers = {{"ETag", std::string(file.etag)}, {"Cache-Control", "no-cache"}};
  if (if_none_match.find(file.etag) != std::string::npos) {
    response.status = 304;
    response.content_type.clear();
    return response;
  }
  response.content_type = file.content_type;
  response.body = file.bytes;
  return response;
}

// What goes wrong is that request's answer.
template <class Action>
void guarded(const ExchangePointer& exchange, const Action& action) {
  try {
    action();
  } catch (const RequestError& error) {
    exchange->fail(error);
  } catch (const UserError& error) {
    exchange->fail(bad_request(error.what()));
  } catch (const std::bad_alloc&) {
    exchange->fail({503, "overloaded", "there is not enough memory"});
  } catch (const std::exception&) {
    exchange->fail({500, "server_error", "the server could not answer this"});
  }
}

}  // namespace

Service::Service(ServiceOptions options, std::vector<std::unique_ptr<ServedModel>> models)
    : options_(std::move(options)), models_(std::move(models)) {}

Service::~Service() = default;

HttpResponse Service::refusal(int status, const std::string& message) {
  const char* type = status == 429 ? "overloaded" : status >= 500 ? "server_error" : "invalid_request_error";
  return response_of({status, type, message});
}

bool Service::is_authorized(const HttpRequest& request) const {
  constexpr std::string_view kBearer = "Bearer ";
  if (options_.api_key.empty()) return true;
  return starts_with(request.authorization, kBearer) &&
         equal_in_constant_time(std::string_view(request.authorization).substr(kBearer.size()), options_.api_key);
}

void Service::answer(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  const auto exchange = std::make_shared<Exchange>(std::move(request), std::move(reply), metrics_, options_.log);
  guarded(exchange, [&] {
    if (answer_at_once(exchange)) return;
    if (!is_authorized(exchange->request())) {
      throw RequestError(401, "authentication_error", "this server wants the header 'Authorization: Bearer KEY'");
    }
    if (draining_) throw RequestError(503, "overloaded", "the server is shutting down");
    workers_.add([this, exchange] { guarded(exchange, [&] { dispatch(exchange); }); });
  });
}

// What needs neither a key nor time.
bool Service::answer_at_once(const ExchangePointer& exchange) {
  const HttpRequest& request = exchange->request();
  const std::string& path = request.path;
  const auto known = [&] {
    exchange->set_route(path);
    require_method(request, "GET");
  };
  if (path == "/health") {
    known();
    exchange->send(200, {{"status", "ok"}});
  } else if (path == "/ready") {
    known();
    if (draining_) throw RequestError(503, "overloaded", "the server is shutting down");
    exchange->send(200, {{"status", "ready"}});
  } else if (path == "/openapi.json") {
    known();
    exchange->send({200, "application/json", openapi_document(options_.version), {}});
  } else {
    const auto files = page_files();
    const auto file = std::find_if(files.begin(), files.end(), [&](const PageFile& f) { return f.path == path; });
    if (file == files.end()) return false;
    known();
    exchange->send(file_response(*file, request.if_none_match));
  }
  return true;
}

void Service::dispatch(const ExchangePointer& exchange) {
  const HttpRequest& request = exchange->request();
  const std::string& path = request.path;
  const auto posted = [&] {
    exchange->set_route(path);
    require_method(request, "POST");
    return JsonBody(std::exchange(exchange->request().body, {}));
  };
  if (path == "/metrics") {
    exchange->set_route(path);
    require_method(request, "GET");
    return exchange->send({200,
                           "text/plain; version=0.0.4; charset=utf-8",
                           metrics_.text(models_, http_ != nullptr ? http_->figures() : HttpFigures{}),
                           {}});
  }
  if (path == "/v1/models") {
    exchange->set_route(path);
    require_method(request, "GET");
    return exchange->send(200, models());
  }
  if (path == "/v1/completions") {
    const JsonBody body = posted();
    ServedModel& model = model_of(body);
    if (model.answerer) return compute(exchange, [exchange, &model, body] { answer_source(exchange, model, body); });
    return answer_completion(exchange, language_model_of(body), body, options_.most_tokens);
  }
  if (path == "/v1/classify") {
    const JsonBody body = posted();
    ServedModel& model = model_of(body);
    return compute(exchange, [exchange, &model, body] { answer_classify(exchange, model, body); });
  }
  if (path == "/v1/fill") {
    const JsonBody body = posted();
    ServedModel& model = model_of(body);
    return compute(exchange, [exchange, &model, body] { answer_fill(exchange, model, body); });
  }
  if (path == "/v1/chat/completions") {
    const ServedModel& model = language_model_of(posted());
    throw bad_request(fmt::format("the model '{}' has no template of a conversation; ask /v1/completions", model.id),
                      "messages");
  }
  if (path == "/v1/embeddings") {
    const JsonBody body = posted();
    return answer_embeddings(exchange, language_model_of(body), body);
  }
  if (path == "/tokenize") {
    const JsonBody body = posted();
    const ServedModel& model = model_of(body);
    if (!model.tokenizer) throw bad_request(fmt::format("the model '{}' reads no texts", model.id), "model");
    return exchange->send(200, {{"tokens", model.tokenizer->encode(body.text("content"))}});
  }
  if (path == "/detokenize") {
    const JsonBody body = posted();
    const ServedModel& model = model_of(body);
    if (!model.tokenizer) throw bad_request(fmt::format("the model '{}' reads no texts", model.id), "model");
    const Json* tokens = body.find("tokens");
    if (tokens == nullptr || !tokens->is_array()) throw bad_request("'tokens' must be a list of token ids", "tokens");
    return exchange->send(
        200, {{"content", model.tokenizer->decode(tokens_of(*tokens, model.tokenizer->vocabulary(), "tokens"))}});
  }
  if (path == "/v1/sessions" || starts_with(path, "/v1/sessions/")) return answer_sessions(exchange);
  throw no_such_path();
}

void Service::compute(const ExchangePointer& exchange, std::function<void()> action) {
  constexpr std::size_t kMostWaiting = 64;
  if (computing_ >= kMostWaiting) {
    throw RequestError(429, "overloaded", fmt::format("{} requests wait already; try again later", kMostWaiting));
  }
  ++computing_;
  computer_.add([this, exchange, action = std::move(action)] {
    guarded(exchange, action);
    --computing_;
  });
}

ServedModel& Service::model_of(const JsonBody& body) const {
  const std::optional<std::string> name = body.optional_text("model");
  if (!name && models_.size() == 1) return *models_.front();
  if (!name) throw bad_request("'model' is missing; /v1/models lists the models", "model");
  for (const auto& model : models_) {
    if (model->id == *name) return *model;
  }
  throw RequestError(404, "not_found",
                     fmt::format("there is no model '{}'; /v1/models lists those that there are", *name), "model");
}

ServedModel& Service::language_model_of(const JsonBody& body) const {
  ServedModel& model = model_of(body);
  if (!model.engine) {
    throw bad_request(fmt::format("the model '{}' is of the kind {} and writes no text", model.id, model.kind),
                      "model");
  }
  return model;
}

Json Service::models() const {
  Json all{{"object", "list"}, {"data", Json::array()}};
  for (const auto& m : models_) {
    Json model{{"id", m->id},
               {"object", "model"},
               {"created", m->created},
               {"owned_by", "cosformer"},
               {"kind", m->kind},
               {"attention", m->attention},
               {"parameters", m->parameters},
               {"context_length", m->context_length ? Json(*m->context_length) : Json()},
               {"vocabulary", m->vocabulary},
               {"tokenizer", m->tokenizer_kind},
               {"state_bytes", m->state_bytes},
               {"softmax_cache_bytes_per_token", m->softmax_cache_bytes_per_token},
               {"chat_template", false}};
    if (!m->classes.empty()) model["classes"] = m->classes;
    all["data"].push_back(std::move(model));
  }
  return all;
}

std::vector<std::string> Service::drain() {
  std::vector<std::string> problems;
  for (const auto& model : models_) {
    if (!model->engine) continue;
    model->engine->drain();
    for (const std::string& problem : model->sessions->save_all()) problems.push_back(problem);
  }
  return problems;
}

}  // namespace cosformer::serve
