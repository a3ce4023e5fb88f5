#include "serve/http/exchange.h"

#include <cstdio>
#include <ctime>

#include <fmt/core.h>

namespace cosformer::serve {
namespace {

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

void add_security_headers(HttpResponse& response) {
  response.headers.insert(
      response.headers.end(),
      {{"X-Content-Type-Options", "nosniff"},
       {"Referrer-Policy", "no-referrer"},
       {"X-Frame-Options", "DENY"},
       {"Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}});
}

HttpResponse response_of(const RequestError& error) {
  HttpResponse response{error.status, "application/json", written(json_of(error)), {}};
  if (error.status == 429 || error.status == 503) response.headers.emplace_back("Retry-After", "1");
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  add_security_headers(response);
  return response;
}

Exchange::Exchange(HttpRequest request, std::shared_ptr<HttpReply> reply, Metrics& metrics, const RequestLog& log)
    : request_(std::move(request)), reply_(std::move(reply)), metrics_(metrics), log_(log) {}

Exchange::~Exchange() {
  const int status = status_ == 0 ? 500 : status_;
  metrics_.observe(route_, status, seconds());
  if (log_.quiet) return;
  std::string line;
  if (log_.json) {
    line = Json({{"time", time_of_day()},
                 {"request", request_.number},
                 {"client", request_.client},
                 {"method", request_.method},
                 {"route", route_},
                 {"status", status},
                 {"seconds", seconds()},
                 {"prompt_tokens", prompt_},
                 {"cached_tokens", cached_},
                 {"completion_tokens", completion_}})
               .dump(-1, ' ', true, Json::error_handler_t::replace);
  } else {
    const std::string method = request_.method.size() <= 16 ? request_.method : "(long)";
    line = fmt::format("{} {} #{} {} {} {} {:.1f} ms, {} + {} tokens, {} cached", time_of_day(), request_.client,
                       request_.number, method, route_, status, seconds() * 1e3, prompt_, completion_, cached_);
  }
  std::fprintf(stderr, "%s\n", line.c_str());
}

double Exchange::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void Exchange::set_tokens(std::size_t prompt, std::size_t cached, std::size_t completion) {
  prompt_ = prompt;
  cached_ = cached;
  completion_ = completion;
}

void Exchange::send(int status, const Json& json) {
  send(HttpResponse{status, "application/json", written(json), {}});
}

void Exchange::send(HttpResponse response) {
  status_ = response.status;
  add_security_headers(response);
  response.headers.emplace_back("X-Request-Id", std::to_string(request_.number));
  reply_->send(std::move(response));
}

void Exchange::fail(const RequestError& error) {
  if (!streams_) {
    status_ = error.status;
    return reply_->send(response_of(error));
  }
  event(json_of(error));
  reply_->finish();
}

void Exchange::begin_events() {
  streams_ = true;
  status_ = 200;
  HttpResponse head{200, "text/event-stream", "", {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
  add_security_headers(head);
  head.headers.emplace_back("X-Request-Id", std::to_string(request_.number));
  reply_->begin(std::move(head));
}

void Exchange::event(const Json& json) {
  reply_->write("data: " + written(json) + "\n\n");
}

void Exchange::end_events() {
  reply_->write("data: [DONE]\n\n");
  reply_->finish();
}

}  // namespace cosformer::serve
