#include "serve/http/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace cosformer::serve {
namespace {

const prometheus::Histogram::BucketBoundaries kSeconds{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                                       0.5,   1,     2,     5,    10,   30,   60,  300};

template <class Builder>
auto& family(prometheus::Registry& registry, Builder builder, const std::string& name, const std::string& help) {
  return builder().Name("cosformer_" + name).Help(help).Register(registry);
}

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests =
      family(registry, prometheus::BuildCounter, "requests_total", "Requests that were answered.");
  prometheus::Family<prometheus::Histogram>& durations =
      family(registry, prometheus::BuildHistogram, "request_seconds", "From a request's arrival to its answer's end.");
  prometheus::Family<prometheus::Histogram>& first_tokens = family(
      registry, prometheus::BuildHistogram, "first_token_seconds", "From a request's arrival to its first token.");
  prometheus::Family<prometheus::Counter>& tokens =
      family(registry, prometheus::BuildCounter, "tokens_total", "Tokens: prompt, cached, completion.");
  prometheus::Family<prometheus::Counter>& steps =
      family(registry, prometheus::BuildCounter, "decode_steps_total", "Steps that read a token of each text.");
  prometheus::Family<prometheus::Gauge>& texts =
      family(registry, prometheus::BuildGauge, "texts", "Requests that wait, and texts that are read or written.");
  prometheus::Family<prometheus::Gauge>& bytes =
      family(registry, prometheus::BuildGauge, "state_bytes", "Memory of states: of the prefix cache, of sessions.");
  prometheus::Family<prometheus::Gauge>& sessions =
      family(registry, prometheus::BuildGauge, "sessions", "Sessions in memory.");
  prometheus::Family<prometheus::Gauge>& connections =
      family(registry, prometheus::BuildGauge, "connections", "Open connections.");
  prometheus::Family<prometheus::Counter>& dropped = family(registry, prometheus::BuildCounter, "dropped_total",
                                                            "Requests or connections refused by the network's limits.");
};

namespace {

void raise(prometheus::Counter& counter, double value) {
  if (value > counter.Value()) counter.Increment(value - counter.Value());
}

}  // namespace

Metrics::Metrics() : families_(std::make_unique<Families>()) {}
Metrics::~Metrics() = default;

void Metrics::observe(const std::string& route, int status, double seconds) {
  families_->requests.Add({{"route", route}, {"status", std::to_string(status)}}).Increment();
  families_->durations.Add({{"route", route}}, kSeconds).Observe(seconds);
}

void Metrics::observe_first_token(const std::string& model, double seconds) {
  families_->first_tokens.Add({{"model", model}}, kSeconds).Observe(seconds);
}

std::string Metrics::text(const std::vector<std::unique_ptr<ServedModel>>& models, const HttpFigures& http) {
  for (const auto& model : models) {
    if (!model->engine) continue;
    const EngineFigures f = model->engine->figures();
    const auto count = [&](const char* kind, std::uint64_t value) {
      raise(families_->tokens.Add({{"model", model->id}, {"kind", kind}}), static_cast<double>(value));
    };
    count("prompt", f.prompt_tokens);
    count("cached", f.cached_tokens);
    count("completion", f.completion_tokens);
    raise(families_->steps.Add({{"model", model->id}}), static_cast<double>(f.steps));
    const auto texts = [&](const char* state, std::size_t value) {
      families_->texts.Add({{"model", model->id}, {"state", state}}).Set(static_cast<double>(value));
    };
    texts("waiting", f.waiting);
    texts("reading", f.reading);
    texts("writing", f.writing);
    families_->bytes.Add({{"model", model->id}, {"of", "prefix_cache"}}).Set(static_cast<double>(f.cached_bytes));
    families_->bytes.Add({{"model", model->id}, {"of", "sessions"}}).Set(static_cast<double>(model->sessions->bytes()));
    families_->sessions.Add({{"model", model->id}}).Set(static_cast<double>(model->sessions->size()));
  }
  families_->connections.Add({}).Set(static_cast<double>(http.connections));
  raise(families_->dropped.Add({{"why", "limit"}}), static_cast<double>(http.refused));
  raise(families_->dropped.Add({{"why", "slow"}}), static_cast<double>(http.timed_out));
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace cosformer::serve
