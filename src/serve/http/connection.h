// One client's connection. Only for the server's own translation units: Beast takes long to compile.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "serve/http/server.h"

namespace cosformer::serve {

class Connection;

struct HttpServer::State {
  State(const HttpOptions& given, Handler handle, Refusal refuse)
      : options(given), handler(std::move(handle)), refusal(std::move(refuse)), acceptor(io), signals(io) {}

  // Signals are waited for until the last connection is gone.
  void end_when_empty() {
    boost::system::error_code ignored;
    if (closing && connections.empty()) signals.cancel(ignored);
  }

  HttpOptions options;
  Handler handler;
  Refusal refusal;
  boost::asio::io_context io{1};
  boost::asio::ip::tcp::acceptor acceptor;
  boost::asio::signal_set signals;
  std::set<Connection*> connections;
  std::uint64_t requests = 0, body_bytes = 0;
  bool closing = false;
  std::atomic<std::size_t> open = 0, refused = 0, timed_out = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<HttpServer::State> state, boost::asio::ip::tcp::socket socket);
  ~Connection();
  void start() { read_head(); }
  void close_when_idle();

 private:
  friend class ConnectionReply;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void read_head();
  void read_body();
  void handle();
  void refuse(int status, const std::string& message);
  void watch();
  void gone();
  void next();
  void close();

  // What ConnectionReply asks for, on the network's thread; `number` is that of the request it answers.
  void send(std::uint64_t number, HttpResponse response, bool in_pieces);
  void write(std::uint64_t number, std::string piece);
  void finish(std::uint64_t number);
  void abandoned(std::uint64_t number);
  void on_gone(std::uint64_t number, std::function<void()> gone);
  void queue(std::string bytes);
  void flush();
  void release_body();

  std::shared_ptr<HttpServer::State> state_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::uint64_t number_ = 0, reserved_ = 0;
  std::size_t pending_bytes_ = 0;
  std::deque<std::string> pending_;
  std::string writing_;
  std::function<void()> on_gone_;
  bool busy_ = false;      // a request is being answered
  bool answered_ = false;  // its head is on its way
  bool in_pieces_ = false, finished_ = false, keep_alive_ = false, is_writing_ = false, is_gone_ = false;
  bool is_head_ = false, is_old_ = false, watching_ = false;
};

}  // namespace cosformer::serve
