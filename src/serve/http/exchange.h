// A request and its answer, from arrival to the line in the log.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "serve/http/json_body.h"
#include "serve/http/metrics.h"
#include "serve/http/server.h"

namespace cosformer::serve {

// Where requests are written down: a line each on standard error, never what was asked or answered.
struct RequestLog {
  bool json = false, quiet = false;
};

class Exchange {
 public:
  Exchange(HttpRequest request, std::shared_ptr<HttpReply> reply, Metrics& metrics, const RequestLog& log);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const HttpRequest& request() const { return request_; }
  HttpRequest& request() { return request_; }
  const std::shared_ptr<HttpReply>& reply() const { return reply_; }
  Metrics& metrics() { return metrics_; }
  double seconds() const;

  // The path as the server knows it ("/v1/sessions/{id}"), for counts.
  void set_route(std::string route) { route_ = std::move(route); }
  void set_tokens(std::size_t prompt, std::size_t cached, std::size_t completion);

  void send(int status, const Json& json);
  void send(HttpResponse response);
  void fail(const RequestError& error);  // within a stream too

  // A stream of server-sent events.
  bool streams() const { return streams_; }
  void begin_events();
  void event(const Json& json);
  void end_events();

 private:
  HttpRequest request_;
  std::shared_ptr<HttpReply> reply_;
  Metrics& metrics_;
  const RequestLog& log_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::string route_ = "(unknown)";
  int status_ = 0;
  bool streams_ = false;
  std::size_t prompt_ = 0, cached_ = 0, completion_ = 0;
};

using ExchangePointer = std::shared_ptr<Exchange>;

// An error as an answer of its own.
HttpResponse response_of(const RequestError& error);
// On every answer.
void add_security_headers(HttpResponse& response);

}  // namespace cosformer::serve
