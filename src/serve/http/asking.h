// /v1/classify, /v1/fill, and /v1/completions of text-to-text models.
#pragma once

#include "serve/http/exchange.h"
#include "serve/http/served_model.h"

namespace cosformer::serve {

void answer_classify(const ExchangePointer& exchange, ServedModel& model, const JsonBody& body);
void answer_fill(const ExchangePointer& exchange, ServedModel& model, const JsonBody& body);
void answer_source(const ExchangePointer& exchange, ServedModel& model, const JsonBody& body);

}  // namespace cosformer::serve
