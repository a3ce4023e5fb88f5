#include "serve/http/asking.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

namespace cosformer::serve {
namespace {

constexpr std::size_t kMostInputs = 256;

// A text, a list of texts, or a list of pairs.
std::vector<std::pair<std::string, std::string>> inputs_of(const JsonBody& body, bool pairs) {
  const auto wrong = [&] {
    return bad_request(pairs ? fmt::format("'input' must be up to {} pairs [\"text\", \"text\"]", kMostInputs)
                             : fmt::format("'input' must be a text or up to {} texts", kMostInputs),
                       "input");
  };
  const Json* input = body.find("input");
  if (input == nullptr) throw wrong();
  if (input->is_string() && !pairs) return {{input->get<std::string>(), ""}};
  if (!input->is_array() || input->empty() || input->size() > kMostInputs) throw wrong();
  std::vector<std::pair<std::string, std::string>> all;
  for (const Json& each : *input) {
    const bool is_pair = each.is_array() && each.size() == 2 && each[0].is_string() && each[1].is_string();
    if (pairs ? !is_pair : !each.is_string()) throw wrong();
    if (pairs) {
      all.emplace_back(each[0].get<std::string>(), each[1].get<std::string>());
    } else {
      all.emplace_back(each.get<std::string>(), "");
    }
  }
  return all;
}

Json data_of(const std::vector<ClassifiedText>& texts, const std::vector<std::string>& classes, std::size_t top) {
  Json data = Json::array();
  for (std::size_t at = 0; at < texts.size(); ++at) {
    const std::vector<float>& p = texts[at].probabilities;
    std::vector<std::size_t> order(classes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] > p[b]; });
    Json probabilities = Json::object();
    for (std::size_t rank = 0; rank < std::min(top, order.size()); ++rank) {
      probabilities[classes[order[rank]]] = p[order[rank]];
    }
    data.push_back({{"index", at},
                    {"label", classes[order.front()]},
                    {"probabilities", std::move(probabilities)},
                    {"truncated", texts[at].truncated}});
  }
  return data;
}

}  // namespace

void answer_classify(const ExchangePointer& exchange, ServedModel& model, const JsonBody& body) {
  if (!model.classifier) {
    throw bad_request(fmt::format("the model '{}' is of the kind {} and classifies no texts", model.id, model.kind),
                      "model");
  }
  const auto inputs = inputs_of(body, model.classifier->pairs());
  const auto top = static_cast<std::size_t>(body.whole("top", 1 << 20, 1, 1 << 20));
  std::size_t tokens = 0;
  const auto count = [&](const std::string& text) {
    return model.tokenizer ? model.tokenizer->encode(text).size() : text.size();
  };
  for (const auto& [first, second] : inputs) {
    if (first.empty() || (model.classifier->pairs() && second.empty())) {
      throw bad_request("'input' must not be empty", "input");
    }
    tokens += count(first) + count(second);
  }
  const std::vector<ClassifiedText> texts = model.classifier->classify(inputs);
  exchange->send(200, {{"object", "list"},
                       {"model", model.id},
                       {"data", data_of(texts, model.classifier->classes(), top)},
                       {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
}

void answer_fill(const ExchangePointer& exchange, ServedModel& model, const JsonBody& body) {
  if (!model.filler) {
    throw bad_request(fmt::format("the model '{}' is of the kind {} and fills no gaps", model.id, model.kind), "model");
  }
  const std::string input = body.text("input");
  const auto top = static_cast<std::size_t>(body.whole("top", 5, 1, 100));
  Json data = Json::array();
  for (const std::vector<GapCandidate>& gap : model.filler->fill(input, top)) {
    Json candidates = Json::array();
    for (const GapCandidate& each : gap) {
      candidates.push_back({{"token", each.token}, {"probability", each.probability}});
    }
    data.push_back({{"index", data.size()}, {"candidates", std::move(candidates)}});
  }
  exchange->send(200, {{"object", "list"}, {"model", model.id}, {"data", std::move(data)}});
}

void answer_source(const ExchangePointer& exchange, ServedModel& model, const JsonBody& body) {
  if (body.number("temperature", 0, 0, 1e6) != 0) {
    throw bad_request("a text-to-text model answers with the likeliest tokens: 'temperature' must be 0 or absent",
                      "temperature");
  }
  if (body.whole("n", 1, 1, 128) != 1) throw bad_request("a text-to-text model has one answer: 'n' must be 1", "n");
  for (const char* field : {"session", "state", "logprobs"}) {
    if (body.has(field)) throw bad_request(fmt::format("a text-to-text model knows no '{}'", field), field);
  }
  const bool stream = body.flag("stream");
  const WrittenAnswer answer = model.answerer->answer(body.text("prompt"));
  exchange->set_tokens(answer.source_tokens, 0, answer.tokens);
  Json whole{{"id", fmt::format("cmpl-{}", exchange->request().number)},
             {"object", "text_completion"},
             {"created", model.created},
             {"model", model.id},
             {"choices",
              Json::array({{{"index", 0}, {"text", answer.text}, {"logprobs", nullptr}, {"finish_reason", "stop"}}})}};
  const Json usage{{"prompt_tokens", answer.source_tokens},
                   {"completion_tokens", answer.tokens},
                   {"total_tokens", answer.source_tokens + answer.tokens},
                   {"prompt_tokens_details", {{"cached_tokens", 0}}}};
  if (!stream) {
    whole["usage"] = usage;
    return exchange->send(200, whole);
  }
  exchange->begin_events();
  exchange->event(whole);
  const Json* options = body.find("stream_options");
  if (options != nullptr && options->is_object() && options->value("include_usage", Json()) == Json(true)) {
    whole["choices"] = Json::array();
    whole["usage"] = usage;
    exchange->event(whole);
  }
  exchange->end_events();
}

}  // namespace cosformer::serve
