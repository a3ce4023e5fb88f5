#include "serve/http/openapi.h"

#include "serve/http/json_body.h"

namespace cosformer::serve {
namespace {

constexpr const char* kSchemas = R"({
"Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "object",
  "required": ["message", "type", "param", "code"], "properties": {"message": {"type": "string"},
  "type": {"enum": ["invalid_request_error", "not_found", "overloaded", "server_error", "authentication_error"]},
  "param": {"type": ["string", "null"]}, "code": {"type": "null"}}}}},
"Tokens": {"type": "array", "items": {"type": "integer", "minimum": 0}},
"Text": {"oneOf": [{"type": "string"}, {"$ref": "#/components/schemas/Tokens"}]},
"Completion": {"type": "object", "properties": {
  "model": {"type": "string"}, "prompt": {"$ref": "#/components/schemas/Text"},
  "max_tokens": {"type": "integer", "minimum": 0, "default": 16},
  "temperature": {"type": "number", "minimum": 0, "default": 1},
  "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1},
  "top_k": {"type": "integer", "minimum": 0, "default": 0},
  "min_p": {"type": "number", "minimum": 0, "maximum": 1, "default": 0},
  "repetition_penalty": {"type": "number", "minimum": 0.001, "maximum": 1000, "default": 1},
  "n": {"type": "integer", "minimum": 1, "maximum": 128, "default": 1},
  "stop": {"oneOf": [{"type": "string"}, {"type": "array", "maxItems": 16, "items": {"type": "string"}}]},
  "seed": {"type": "integer"}, "stream": {"type": "boolean", "default": false},
  "stream_options": {"type": "object", "properties": {"include_usage": {"type": "boolean"}}},
  "logprobs": {"type": "integer", "minimum": 0, "maximum": 20}, "echo": {"type": "boolean", "default": false},
  "past_end": {"type": "boolean", "default": false}, "session": {"type": "string"}, "return_state": {"type": "boolean", "default": false},
  "state": {"type": "string", "contentEncoding": "base64"}}},
"Embeddings": {"type": "object", "required": ["input"], "properties": {"model": {"type": "string"},
  "input": {"oneOf": [{"$ref": "#/components/schemas/Text"},
    {"type": "array", "maxItems": 256, "items": {"$ref": "#/components/schemas/Text"}}]},
  "encoding_format": {"enum": ["float", "base64"], "default": "float"}}},
"Chat": {"type": "object", "required": ["messages"], "properties": {"model": {"type": "string"},
  "messages": {"type": "array", "items": {"type": "object"}}}},
"Tokenize": {"type": "object", "required": ["content"],
  "properties": {"model": {"type": "string"}, "content": {"type": "string"}}},
"Detokenize": {"type": "object", "required": ["tokens"],
  "properties": {"model": {"type": "string"}, "tokens": {"$ref": "#/components/schemas/Tokens"}}},
"NewSession": {"type": "object", "properties": {"model": {"type": "string"},
  "id": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}, "prompt": {"type": "string"}}},
"Append": {"type": "object", "required": ["content"], "properties": {"content": {"type": "string"}}},
"Fork": {"type": "object", "properties": {"id": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
  "at": {"type": "integer", "minimum": 0}}},
"Classify": {"type": "object", "required": ["input"], "properties": {"model": {"type": "string"}, "input": {"oneOf": [
  {"type": "string"}, {"type": "array", "maxItems": 256, "items": {"oneOf": [{"type": "string"},
    {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string"}}]}}]},
  "top": {"type": "integer", "minimum": 1}}},
"Fill": {"type": "object", "required": ["input"], "properties": {"model": {"type": "string"},
  "input": {"type": "string"}, "top": {"type": "integer", "minimum": 1, "maximum": 100, "default": 5}}},
"Nothing": {"type": "object"}
})";

struct Operation {
  const char *path, *method, *summary, *schema;
  int success = 200;
  const char* content = "application/json";
};

constexpr Operation kOperations[] = {
    {"/health", "get", "Whether the process lives.", nullptr},
    {"/ready", "get", "Whether requests are taken.", nullptr},
    {"/metrics", "get", "Counts and times for Prometheus.", nullptr, 200, "text/plain"},
    {"/openapi.json", "get", "This document.", nullptr},
    {"/v1/models", "get", "The models that are served.", nullptr},
    {"/v1/completions", "post", "Continues a text.", "Completion"},
    {"/v1/classify", "post", "Which class a text or a pair of texts belongs to.", "Classify"},
    {"/v1/fill", "post", "What may stand in a text's gaps, [MASK].", "Fill"},
    {"/v1/chat/completions", "post", "Answers a conversation, where the model has a template for it.", "Chat"},
    {"/v1/embeddings", "post", "Texts as vectors.", "Embeddings"},
    {"/tokenize", "post", "A text's tokens.", "Tokenize"},
    {"/detokenize", "post", "The text of tokens.", "Detokenize"},
    {"/v1/sessions", "get", "The sessions in memory.", nullptr},
    {"/v1/sessions", "post", "Begins a session.", "NewSession", 201},
    {"/v1/sessions/{id}", "get", "A session.", nullptr},
    {"/v1/sessions/{id}", "delete", "Forgets a session, its file too.", nullptr},
    {"/v1/sessions/{id}/append", "post", "Adds to a session's text.", "Append"},
    {"/v1/sessions/{id}/fork", "post", "Another session that goes on from here, or from a snapshot.", "Fork", 201},
    {"/v1/sessions/{id}/save", "post", "Writes the session to the server's disk.", "Nothing"},
    {"/v1/sessions/{id}/restore", "post", "Reads a session from the server's disk.", "Nothing"},
};

Json content_of(const char* type, const char* schema) {
  Json content = Json::object();
  content[type]["schema"] =
      schema == nullptr ? Json::object() : Json{{"$ref", std::string("#/components/schemas/") + schema}};
  return content;
}

}  // namespace

std::string openapi_document(const std::string& version) {
  Json document{
      {"openapi", "3.1.0"},
      {"info", {{"title", "cosformer serve"}, {"version", version}}},
      {"paths", Json::object()},
      {"components",
       {{"schemas", Json::parse(kSchemas)}, {"securitySchemes", {{"key", {{"type", "http"}, {"scheme", "bearer"}}}}}}},
      {"security", Json::array({Json::object(), {{"key", Json::array()}}})}};
  for (const Operation& o : kOperations) {
    Json operation{{"summary", o.summary}, {"responses", Json::object()}};
    operation["responses"][std::to_string(o.success)] = {{"description", "The answer."},
                                                         {"content", content_of(o.content, nullptr)}};
    operation["responses"]["default"] = {{"description", "What was wrong."},
                                         {"content", content_of("application/json", "Error")}};
    if (o.schema != nullptr) {
      operation["requestBody"] = {{"required", std::string(o.schema) != "Nothing"},
                                  {"content", content_of("application/json", o.schema)}};
    }
    if (std::string(o.path).find("{id}") != std::string::npos) {
      operation["parameters"] = Json::array({{{"name", "id"},
                                              {"in", "path"},
                                              {"required", true},
                                              {"schema", {{"type", "string"}, {"pattern", "^[A-Za-z0-9_-]{1,64}$"}}}}});
    }
    document["paths"][o.path][o.method] = std::move(operation);
  }
  return written(document);
}

}  // namespace cosformer::serve
