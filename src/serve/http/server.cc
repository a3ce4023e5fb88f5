#include "serve/http/server.h"

#include <chrono>
#include <csignal>
#include <set>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "serve/http/connection.h"

namespace cosformer::serve {

namespace asio = boost::asio;
using asio::ip::tcp;

// Its own, since State is.
struct Accepting {
  template <class State>
  static void next(const std::shared_ptr<State>& state) {
    state->acceptor.async_accept([state](boost::system::error_code error, tcp::socket socket) {
      if (!state->acceptor.is_open()) return;
      if (!error) {
        if (state->connections.size() >= state->options.most_connections) {
          ++state->refused;  // and the socket is closed
        } else {
          std::make_shared<Connection>(state, std::move(socket))->start();
        }
        return next(state);
      }
      // No file descriptor is left, say: what is open goes on, and later there may be one.
      const auto pause = std::make_shared<asio::steady_timer>(state->io, std::chrono::milliseconds(100));
      pause->async_wait([state, pause](boost::system::error_code) { next(state); });
    });
  }
};

HttpServer::HttpServer(const HttpOptions& options, Handler handler, Refusal refusal)
    : state_(std::make_shared<State>(options, std::move(handler), std::move(refusal))) {
  boost::system::error_code error;
  const asio::ip::address address =
      asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
  if (error) throw UserError(fmt::format("--host must be an address such as 127.0.0.1 or ::1; got '{}'", options.host));
  const tcp::endpoint endpoint(address, options.port);
  tcp::acceptor& acceptor = state_->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw UserError(fmt::format("cannot listen on {} port {}: {}; --port chooses another, 0 any that is free",
                                options.host, options.port, error.message()));
  }
}

HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const {
  return state_->acceptor.local_endpoint().port();
}

HttpFigures HttpServer::figures() const {
  return {state_->open, state_->refused, state_->timed_out};
}

void HttpServer::run(const std::function<void(int)>& on_signal) {
  state_->signals.add(SIGTERM);
  state_->signals.add(SIGINT);
  int count = 0;
  std::function<void()> wait = [&] {
    state_->signals.async_wait([&](boost::system::error_code error, int) {
      if (error) return;
      on_signal(++count);
      wait();
    });
  };
  wait();
  Accepting::next(state_);
  state_->io.run();
}

void HttpServer::close_gently() {
  asio::post(state_->io, [state = state_] {
    boost::system::error_code ignored;
    state->acceptor.close(ignored);
    state->closing = true;
    const std::set<Connection*> open = state->connections;
    for (Connection* connection : open) connection->close_when_idle();
    state->end_when_empty();
  });
}

void HttpServer::stop() {
  state_->io.stop();
}

}  // namespace cosformer::serve
