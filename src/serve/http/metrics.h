// What is counted, for Prometheus.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/http/served_model.h"
#include "serve/http/server.h"

namespace cosformer::serve {

class Metrics {
 public:
  Metrics();
  ~Metrics();
  // Of a request that is answered; `route` is one of the server's, not what the client wrote.
  void observe(const std::string& route, int status, double seconds);
  void observe_first_token(const std::string& model, double seconds);
  // In Prometheus' text format.
  std::string text(const std::vector<std::unique_ptr<ServedModel>>& models, const HttpFigures& http);

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace cosformer::serve
