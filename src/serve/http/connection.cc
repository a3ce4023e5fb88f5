#include "serve/http/connection.h"

#include <chrono>

#include <boost/asio/post.hpp>
#include <fmt/core.h>
#include <sys/socket.h>

namespace cosformer::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace {

constexpr std::size_t kMostPending = 4 << 20;  // bytes that a slow client may leave with us

std::string head_of(const HttpResponse& response, bool in_pieces, bool keep_alive, bool is_old) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status,
                                 std::string(http::obsolete_reason(static_cast<http::status>(response.status))));
  if (!response.content_type.empty()) head += fmt::format("Content-Type: {}\r\n", response.content_type);
  if (!in_pieces) {
    head += fmt::format("Content-Length: {}\r\n", response.body.size());
  } else if (!is_old) {
    head += "Transfer-Encoding: chunked\r\n";
  }
  head += keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  for (const auto& [name, value] : response.headers) head += fmt::format("{}: {}\r\n", name, value);
  return head + "\r\n";
}

std::string chunk_of(const std::string& bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

}  // namespace

// Hands everything over to the network's thread.
class ConnectionReply : public HttpReply {
 public:
  ConnectionReply(std::shared_ptr<Connection> connection, std::uint64_t number)
      : connection_(std::move(connection)), number_(number) {}
  ~ConnectionReply() override {
    post([number = number_](Connection& c) { c.abandoned(number); });
  }
  void send(HttpResponse response) override {
    post([number = number_, r = std::move(response)](Connection& c) mutable { c.send(number, std::move(r), false); });
  }
  void begin(HttpResponse head) override {
    post([number = number_, r = std::move(head)](Connection& c) mutable { c.send(number, std::move(r), true); });
  }
  void write(std::string piece) override {
    post([number = number_, p = std::move(piece)](Connection& c) mutable { c.write(number, std::move(p)); });
  }
  void finish() override {
    post([number = number_](Connection& c) { c.finish(number); });
  }
  void on_gone(std::function<void()> gone) override {
    post([number = number_, g = std::move(gone)](Connection& c) mutable { c.on_gone(number, std::move(g)); });
  }

 private:
  template <class Action>
  void post(Action action) {
    asio::post(connection_->state_->io,
               [connection = connection_, action = std::move(action)]() mutable { action(*connection); });
  }
  std::shared_ptr<Connection> connection_;
  std::uint64_t number_;
};

Connection::Connection(std::shared_ptr<HttpServer::State> state, asio::ip::tcp::socket socket)
    : state_(std::move(state)), stream_(std::move(socket)), buffer_(std::size_t{64} << 10) {
  beast::error_code ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  state_->connections.insert(this);
  state_->open = state_->connections.size();
}

Connection::~Connection() {
  release_body();
  state_->connections.erase(this);
  state_->open = state_->connections.size();
  state_->end_when_empty();
}

void Connection::release_body() {
  state_->body_bytes -= reserved_;
  reserved_ = 0;
}

void Connection::close_when_idle() {
  if (!busy_) close();
}

void Connection::close() {
  beast::error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  stream_.close();
}

void Connection::read_head() {
  if (state_->closing) return close();
  parser_.emplace();
  parser_->header_limit(state_->options.most_header);
  parser_->body_limit(state_->options.most_body);
  const bool begun = buffer_.size() > 0;
  stream_.expires_after(std::chrono::seconds(begun ? state_->options.header_seconds : state_->options.idle_seconds));
  if (!begun) {
    // Until the first byte a client may be idle; from then on it has to be quick.
    stream_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](beast::error_code error, std::size_t n) {
      if (error) return self->close();
      self->buffer_.commit(n);
      self->read_head();
    });
    return;
  }
  http::async_read_header(
      stream_, buffer_, *parser_, [self = shared_from_this()](beast::error_code error, std::size_t) {
        if (error == http::error::end_of_stream || error == asio::error::eof) return self->close();
        if (error == beast::error::timeout) {
          ++self->state_->timed_out;
          return self->close();
        }
        if (error == http::error::header_limit || error == http::error::buffer_overflow) {
          return self->refuse(
              431, fmt::format("the head of a request may have {} bytes", self->state_->options.most_header));
        }
        if (error == http::error::body_limit) {
          return self->refuse(413,
                              fmt::format("the body of a request may have {} bytes", self->state_->options.most_body));
        }
        if (error && error.category() == http::make_error_code(http::error::bad_method).category()) {
          return self->refuse(400, fmt::format("this is not HTTP/1.1: {}", error.message()));
        }
        if (error) return self->close();
        self->read_body();
      });
}

void Connection::read_body() {
  const auto length = parser_->content_length();
  if (parser_->chunked()) return refuse(411, "a request's body needs a Content-Length");
  if (length && *length > state_->options.most_body) {
    return refuse(413, fmt::format("the body of a request may have {} bytes; this one would have {}",
                                   state_->options.most_body, *length));
  }
  if (state_->body_bytes + length.value_or(0) > state_->options.most_bodies) {
    return refuse(429, "too many large requests are under way; try again later");
  }
  reserved_ = length.value_or(0);
  state_->body_bytes += reserved_;
  stream_.expires_after(std::chrono::seconds(state_->options.body_seconds));
  const auto read = [self = shared_from_this()] {
    http::async_read(self->stream_, self->buffer_, *self->parser_, [self](beast::error_code error, std::size_t) {
      if (error == beast::error::timeout) ++self->state_->timed_out;
      if (error) return self->close();
      self->handle();
    });
  };
  if (parser_->get()[http::field::expect] != "100-continue") return read();
  writing_ = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(stream_, asio::buffer(writing_),
                    [self = shared_from_this(), read](beast::error_code error, std::size_t) {
                      if (error) return self->close();
                      read();
                    });
}

void Connection::handle() {
  const auto& message = parser_->get();
  const auto text = [](beast::string_view view) { return std::string(view.data(), view.size()); };
  HttpRequest request;
  request.method = text(message.method_string());
  const std::string target = text(message.target());
  const std::size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (mark != std::string::npos) request.query = target.substr(mark + 1);
  request.authorization = text(message[http::field::authorization]);
  request.content_type = text(message[http::field::content_type]);
  request.if_none_match = text(message[http::field::if_none_match]);
  beast::error_code unknown;
  const auto client = stream_.socket().remote_endpoint(unknown);
  if (!unknown) request.client = client.address().to_string();
  is_head_ = message.method() == http::verb::head;
  is_old_ = message.version() < 11;
  keep_alive_ = message.keep_alive() && !state_->closing;
  request.body = std::move(parser_->get().body());
  parser_.reset();
  busy_ = true;
  answered_ = in_pieces_ = finished_ = false;
  number_ = request.number = ++state_->requests;
  stream_.expires_never();
  watch();
  const auto reply = std::make_shared<ConnectionReply>(shared_from_this(), number_);
  state_->handler(std::move(request), reply);
}

// While an answer is made nothing else would tell that its client has gone. What it sends meanwhile is its next
// request: then it is looked at no more.
void Connection::watch() {
  if (watching_ || buffer_.size() > 0) return;
  watching_ = true;
  stream_.socket().async_wait(asio::ip::tcp::socket::wait_read, [self = shared_from_this()](beast::error_code error) {
    self->watching_ = false;
    if (error || !self->busy_) return;
    char byte = 0;
    const ssize_t got = ::recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) self->gone();
  });
}

void Connection::gone() {
  if (is_gone_) return;
  is_gone_ = true;
  pending_.clear();
  pending_bytes_ = 0;
  if (const auto told = std::exchange(on_gone_, nullptr)) told();
  close();
}

void Connection::refuse(int status, const std::string& message) {
  ++state_->refused;
  busy_ = true;
  answered_ = in_pieces_ = finished_ = false;
  keep_alive_ = is_head_ = false;
  number_ = ++state_->requests;
  send(number_, state_->refusal(status, message), false);
}

void Connection::send(std::uint64_t number, HttpResponse response, bool in_pieces) {
  if (number != number_ || answered_ || !busy_) return;
  answered_ = true;
  in_pieces_ = in_pieces;
  if (in_pieces && is_old_) keep_alive_ = false;
  if (state_->closing) keep_alive_ = false;
  queue(head_of(response, in_pieces, keep_alive_, is_old_));
  if (!response.body.empty() && !is_head_) {
    if (in_pieces) {
      write(number, std::move(response.body));
    } else {
      queue(std::move(response.body));
    }
  }
  if (!in_pieces) finished_ = true;
  flush();
}

void Connection::write(std::uint64_t number, std::string piece) {
  if (number != number_ || !in_pieces_ || finished_ || piece.empty()) return;
  if (!is_head_) queue(is_old_ ? std::move(piece) : chunk_of(piece));
  flush();
}

void Connection::finish(std::uint64_t number) {
  if (number != number_ || !in_pieces_ || finished_) return;
  if (!is_old_ && !is_head_) queue("0\r\n\r\n");
  finished_ = true;
  flush();
}

void Connection::abandoned(std::uint64_t number) {
  if (number != number_ || !busy_ || finished_ || is_gone_) return;
  if (answered_) return gone();  // in the middle of an answer
  send(number, state_->refusal(500, "the request was dropped"), false);
}

void Connection::on_gone(std::uint64_t number, std::function<void()> told) {
  if (number != number_ || is_gone_) return told();
  if (busy_ && !finished_) on_gone_ = std::move(told);
}

void Connection::queue(std::string bytes) {
  if (is_gone_) return;
  pending_bytes_ += bytes.size();
  pending_.push_back(std::move(bytes));
  if (in_pieces_ && pending_bytes_ > kMostPending) gone();
}

void Connection::flush() {
  if (is_writing_ || is_gone_) return;
  if (pending_.empty()) {
    if (finished_) next();
    return;
  }
  writing_.clear();
  while (!pending_.empty()) {
    writing_ += pending_.front();
    pending_.pop_front();
  }
  pending_bytes_ = 0;
  is_writing_ = true;
  stream_.expires_after(std::chrono::seconds(state_->options.write_seconds));
  asio::async_write(stream_, asio::buffer(writing_), [self = shared_from_this()](beast::error_code error, std::size_t) {
    self->is_writing_ = false;
    if (error == beast::error::timeout) ++self->state_->timed_out;
    if (error) return self->gone();
    self->stream_.expires_never();
    self->flush();
  });
}

void Connection::next() {
  if (!busy_) return;
  busy_ = false;
  on_gone_ = nullptr;
  release_body();
  if (!keep_alive_) {
    // What the client still sends is not read; its answer must not be lost to a reset.
    beast::error_code ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    stream_.expires_after(std::chrono::seconds(2));
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = shared_from_this()](beast::error_code, std::size_t) { self->close(); });
    return;
  }
  read_head();
}

}  // namespace cosformer::serve
