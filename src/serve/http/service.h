// What each path answers.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/http/exchange.h"
#include "serve/http/served_model.h"
#include "serve/http/workers.h"

namespace cosformer::serve {

struct ServiceOptions {
  std::string api_key;                               // empty: none is asked for
  std::int64_t most_tokens = std::int64_t{1} << 24;  // of an answer
  std::string version;
  RequestLog log;
};

class Service {
 public:
  Service(ServiceOptions options, std::vector<std::unique_ptr<ServedModel>> models);
  ~Service();

  // On the network's thread.
  void answer(HttpRequest request, std::shared_ptr<HttpReply> reply);
  static HttpResponse refusal(int status, const std::string& message);
  void set_http(const HttpServer& http) { http_ = &http; }

  // /ready says no from now on, and nothing new begins.
  void begin_draining() { draining_ = true; }
  // Waits for what is under way, and saves sessions. Tells what went wrong, a line each.
  std::vector<std::string> drain();

 private:
  void dispatch(const ExchangePointer& exchange);
  bool is_authorized(const HttpRequest& request) const;
  bool answer_at_once(const ExchangePointer& exchange);
  void answer_sessions(const ExchangePointer& exchange);
  void answer_session(const ExchangePointer& exchange, const std::string& id, const std::string& verb);
  ServedModel& model_of(const JsonBody& body) const;
  ServedModel& language_model_of(const JsonBody& body) const;
  ServedModel& owner_of(const std::string& session) const;
  Json models() const;

  const ServiceOptions options_;
  const std::vector<std::unique_ptr<ServedModel>> models_;
  Metrics metrics_;
  const HttpServer* http_ = nullptr;
  std::atomic<bool> draining_ = false;
  Workers workers_{2};
  // Models without an engine are asked one after the other.
  void compute(const ExchangePointer& exchange, std::function<void()> action);
  std::atomic<std::size_t> computing_ = 0;
  Workers computer_{1};
};

}  // namespace cosformer::serve
