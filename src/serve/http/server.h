// An HTTP/1.1 server: connections, limits and time-outs. What is answered is somebody else's.
//
// One thread does all that waits for the network; handlers are called on it and must not compute. Answers may come from
// any thread, at once or piece by piece.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cosformer::serve {

struct HttpOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any that is free
  std::size_t most_connections = 2048;
  std::uint64_t most_body = std::uint64_t{16} << 20;     // bytes of one request
  std::uint64_t most_bodies = std::uint64_t{256} << 20;  // of all that are under way
  std::uint32_t most_header = 16 << 10;
  int header_seconds = 10;  // for the whole head of a request, once its first byte is there
  int body_seconds = 60;    // for the whole body
  int idle_seconds = 75;    // between two requests
  int write_seconds = 30;   // in which a client must take something of what it is sent
};

struct HttpRequest {
  std::string method, path, query, body, authorization, content_type, if_none_match, client;
  std::uint64_t number = 0;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// The answer to one request: either send(), or begin(), any number of write() and finish(). Behind a client that is
// gone everything is taken and thrown away. Whoever lets go of it without an answer gives a 500.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  virtual void send(HttpResponse response) = 0;
  // The body follows in pieces; that of `head` is the first.
  virtual void begin(HttpResponse head) = 0;
  virtual void write(std::string piece) = 0;
  virtual void finish() = 0;
  // Is called once, on the network's thread, when the client goes before all was sent; at once if it is gone.
  virtual void on_gone(std::function<void()> gone) = 0;
};

struct HttpFigures {
  std::size_t connections = 0, refused = 0, timed_out = 0;
};

class HttpServer {
 public:
  using Handler = std::function<void(HttpRequest, std::shared_ptr<HttpReply>)>;
  // Of what no handler sees: heads that cannot be read, bodies that are too large. Gives the body of the answer.
  using Refusal = std::function<HttpResponse(int status, const std::string& message)>;

  // Listens. Throws UserError when the address cannot be had.
  HttpServer(const HttpOptions& options, Handler handler, Refusal refusal);
  ~HttpServer();

  std::uint16_t port() const;
  HttpFigures figures() const;

  // Serves until stop(). `on_signal` is told of SIGTERM and SIGINT: how many there were.
  void run(const std::function<void(int count)>& on_signal);
  // From any thread. Accepts no more connections; those that are idle are closed, others when their answer is sent.
  void close_gently();
  // From any thread: run() returns.
  void stop();

  struct State;  // what its connections share

 private:
  std::shared_ptr<State> state_;
};

}  // namespace cosformer::serve
