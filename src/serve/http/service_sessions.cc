// /v1/sessions: texts that are kept between requests.
#include <fmt/core.h>

#include "serve/http/completions.h"
#include "serve/http/service.h"

namespace cosformer::serve {
namespace {

constexpr std::string_view kFolder = "/v1/sessions/";

RequestError wrong_method(const std::string& methods) {
  return {405, "invalid_request_error", fmt::format("this path is asked with {}", methods)};
}

}  // namespace

ServedModel& Service::owner_of(const std::string& session) const {
  for (const auto& model : models_) {
    if (!model->sessions) continue;
    try {
      model->sessions->info(session);
      return *model;
    } catch (const RequestError&) {  // not this one's
    }
  }
  throw RequestError(404, "not_found",
                     fmt::format("there is no session '{}'", SessionStore::is_id(session) ? session : "…"), "session");
}

void Service::answer_sessions(const ExchangePointer& exchange) {
  const std::string& path = exchange->request().path;
  if (path.size() > kFolder.size()) {
    const std::string rest = path.substr(kFolder.size());
    const std::size_t slash = rest.find('/');
    const std::string verb = slash == std::string::npos ? "" : rest.substr(slash + 1);
    return answer_session(exchange, rest.substr(0, slash), verb);
  }
  exchange->set_route("/v1/sessions");
  if (exchange->request().method == "GET") {
    Json all{{"object", "list"}, {"data", Json::array()}};
    for (const auto& model : models_) {
      if (!model->sessions) continue;
      for (const SessionInfo& session : model->sessions->list()) all["data"].push_back(json_of(session, *model));
    }
    return exchange->send(200, all);
  }
  if (exchange->request().method != "POST") throw wrong_method("GET or POST");
  const JsonBody body(exchange->request().body);
  ServedModel& model = language_model_of(body);
  const std::string id = body.optional_text("id").value_or(model.sessions->new_id());
  model.sessions->require_free(id);
  for (const auto& other : models_) {
    if (other->sessions && other.get() != &model) other->sessions->require_free(id);  // a name is enough to find it
  }
  read_into(exchange, model, std::nullopt, body.optional_text("prompt").value_or(""),
            [exchange, &model, id](Session s) {
              exchange->send(201, json_of(model.sessions->add(id, std::move(s)), model));
            });
}

void Service::answer_session(const ExchangePointer& exchange, const std::string& id, const std::string& verb) {
  const std::string& method = exchange->request().method;
  const bool is_known = verb == "append" || verb == "fork" || verb == "save" || verb == "restore";
  if (!verb.empty() && !is_known) throw RequestError(404, "not_found", "there is no such path");
  exchange->set_route(verb.empty() ? "/v1/sessions/{id}" : "/v1/sessions/{id}/" + verb);
  if (verb.empty()) {
    if (method != "GET" && method != "HEAD" && method != "DELETE") throw wrong_method("GET or DELETE");
    ServedModel& model = owner_of(id);
    if (method != "DELETE") return exchange->send(200, json_of(model.sessions->info(id), model));
    model.sessions->remove(id);
    return exchange->send(200, {{"id", id}, {"object", "session"}, {"deleted", true}});
  }
  if (method != "POST") throw wrong_method("POST");
  const std::string& text = exchange->request().body;
  const JsonBody body(text.empty() ? "{}" : text);
  if (verb == "restore") {
    ServedModel* model = nullptr;
    for (const auto& each : models_) {
      if (each->sessions && (body.has("model") ? each->id == body.text("model") : each->sessions->is_saved(id))) {
        model = each.get();
        break;
      }
    }
    if (model == nullptr) throw RequestError(404, "not_found", "no session of this name was saved", "session");
    return exchange->send(200, json_of(model->sessions->restore(id), *model));
  }
  ServedModel& model = owner_of(id);
  if (verb == "save") return exchange->send(200, json_of(model.sessions->save(id), model));
  if (verb == "fork") {
    const std::string to = body.optional_text("id").value_or(model.sessions->new_id());
    std::optional<std::int64_t> at;
    if (body.has("at")) at = body.whole("at", 0, 0, std::int64_t{1} << 53);
    for (const auto& other : models_) {
      if (other->sessions && other.get() != &model) other->sessions->require_free(to);
    }
    return exchange->send(201, json_of(model.sessions->fork(id, to, at), model));
  }
  const std::string content = body.text("content");
  Session session = model.sessions->take(id);
  try {
    read_into(
        exchange, model, std::move(session), content,
        [exchange, &model, id](Session s) {
          exchange->send(200, json_of(model.sessions->give_back(id, std::move(s)), model));
        },
        [&model, id] { model.sessions->release(id); });
  } catch (...) {
    model.sessions->release(id);
    throw;
  }
}

}  // namespace cosformer::serve
