// `cosformer serve`: trained models at work for many clients, over HTTP.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <thread>

#include <fmt/core.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/regular_file.h"
#include "cli/command.h"
#include "cli/serve/asked_runs.h"
#include "cli/terminal/numbers.h"
#include "cli/version.h"
#include "serve/http/server.h"
#include "serve/http/service.h"

namespace cosformer::cli {
namespace {

struct Options {
  std::vector<std::string> runs;
  serve::HttpOptions http;
  serve::ServedModelOptions model;
  std::string key_file;
  long long port = 8080, memory = 2LL << 30, max_body = 16LL << 20, max_queue = 256, batch = 64, max_tokens = 1LL << 24,
            connections = 2048;
  bool no_auth = false, json_log = false, quiet = false;
};

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// From the file, or the environment. Throws UserError where the address demands one and there is none.
std::string api_key_of(const Options& o) {
  std::string key;
  if (!o.key_file.empty()) {
    constexpr std::uint64_t kLongest = 4096;
    key = read_regular_file(o.key_file, kLongest, "the file of --api-key-file");
    while (!key.empty() && std::isspace(static_cast<unsigned char>(key.back())) != 0) key.pop_back();
    if (key.empty()) throw UserError(fmt::format("'{}' holds no key", o.key_file));
  } else if (const char* given = std::getenv("COSFORMER_API_KEY")) {
    key = given;
  }
  if (o.no_auth) {
    if (!key.empty()) throw UserError("--no-auth asks for no key, and there is one; leave one of them out");
    return "";
  }
  if (key.empty() && !is_loopback(o.http.host)) {
    throw UserError(fmt::format(
        "--host {} can be reached from other machines, so that a key is needed: put one into the environment variable "
        "COSFORMER_API_KEY or a file for --api-key-file (openssl rand -hex 32 makes one), or say --no-auth if anybody "
        "may ask",
        o.http.host));
  }
  return key;
}

void run_serve(Options o) {
  o.http.port = static_cast<std::uint16_t>(o.port);
  o.http.most_body = static_cast<std::uint64_t>(o.max_body);
  o.http.most_bodies = std::max(o.http.most_bodies, o.http.most_body);
  o.http.most_connections = static_cast<std::size_t>(o.connections);
  o.model.memory = static_cast<std::uint64_t>(o.memory) / o.runs.size();
  o.model.engine.queue = static_cast<std::size_t>(o.max_queue);
  o.model.engine.rows = o.batch;
  serve::ServiceOptions options;
  options.api_key = api_key_of(o);
  options.most_tokens = o.max_tokens;
  options.version = kVersion;
  options.log = {o.json_log, o.quiet};
  std::vector<std::unique_ptr<serve::ServedModel>> models;
  std::set<std::string> names;
  for (const std::string& run : o.runs) {
    models.push_back(open_run_to_serve(run, o.model));
    const serve::ServedModel& model = *models.back();
    if (!names.insert(model.id).second) {
      throw UserError(
          fmt::format("two runs are called '{}'; models are asked for by the names of their folders", model.id));
    }
    if (o.quiet) continue;
    std::fprintf(stderr, "cosformer: %s: %s, %lld parameters%s\n", model.id.c_str(), model.attention.c_str(),
                 static_cast<long long>(model.parameters),
                 model.engine && !model.engine->writes_together()
                     ? "; its texts are written one after the other, since their states grow or depend on each other"
                     : "");
  }
  serve::Service service(options, std::move(models));
  serve::HttpServer server(
      o.http,
      [&](serve::HttpRequest request, std::shared_ptr<serve::HttpReply> reply) {
        service.answer(std::move(request), std::move(reply));
      },
      serve::Service::refusal);
  service.set_http(server);
  const bool is_six = o.http.host.find(':') != std::string::npos;
  std::printf("listening on http://%s%s%s:%u\n", is_six ? "[" : "", o.http.host.c_str(), is_six ? "]" : "",
              server.port());
  std::fflush(stdout);
  std::thread draining;
  server.run([&](int count) {
    if (count > 1) ::_exit(130);
    if (!o.quiet) std::fprintf(stderr, "cosformer: ending when all is answered; a second signal ends at once\n");
    service.begin_draining();
    draining = std::thread([&] {
      for (const std::string& problem : service.drain()) std::fprintf(stderr, "cosformer: %s\n", problem.c_str());
      server.close_gently();
    });
  });
  if (draining.joinable()) draining.join();
}

}  // namespace

void add_serve(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  app.add_option("RUN", o->runs, "Folders of runs, or their bundles; each is asked for by its name.")->required();
  app.add_option("--host", o->http.host,
                 "Listens on this address. Others than the loopback's need a key (--api-key-file), or --no-auth.")
      ->capture_default_str();
  app.add_option("--port", o->port, "Listens on this port; 0: any that is free, which the first line tells.")
      ->check(whole_number(0, 65535))
      ->capture_default_str();
  app.add_option("--sessions", o->model.sessions_folder,
                 "Keeps sessions that are saved in this folder, and all of them when the server ends.");
  app.add_option("--memory", o->memory,
                 "Bytes for the states of sessions and of beginnings of prompts, which need not be read again then.")
      ->check(whole_number(1 << 20, 1LL << 50))
      ->capture_default_str();
  app.add_option("--batch", o->batch, "Writes at most this many texts at the same time.")
      ->check(whole_number(1, 4096))
      ->capture_default_str();
  app.add_option("--max-queue", o->max_queue, "Lets this many requests wait; more are told to come again (429).")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  app.add_option("--max-tokens", o->max_tokens, "Refuses requests for longer answers.")
      ->check(whole_number(1, 1LL << 40))
      ->capture_default_str();
  app.add_option("--max-body", o->max_body, "Refuses requests of more bytes.")
      ->check(whole_number(1024, 1LL << 34))
      ->capture_default_str();
  app.add_option("--max-connections", o->connections, "Keeps at most this many connections open.")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  app.add_option("--api-key-file", o->key_file,
                 "Answers only who sends the key in this file as 'Authorization: Bearer KEY'; without a file "
                 "the environment variable COSFORMER_API_KEY is read.");
  app.add_flag("--no-auth", o->no_auth, "Lets anybody ask who can reach the address.");
  app.add_option("--device", o->model.device, "Computes on this device; auto takes a GPU where there is one.")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_flag("--json-log", o->json_log, "Writes the log, a line for each request, as JSON.");
  app.add_flag("--quiet", o->quiet, "Writes no log.");
  app.footer(
      "Try it:\n"
      "  cosformer serve runs/book\n"
      "  curl http://127.0.0.1:8080/v1/completions -d '{\"prompt\": \"Once upon a time\", \"max_tokens\": 50}'\n"
      "OpenAI's clients work with base_url=http://127.0.0.1:8080/v1. Texts come out as cosformer generate writes them\n"
      "with the same seed, however many are written at once. docs/serving.md tells more.");
  app.callback([o] { run_serve(*o); });
}

}  // namespace cosformer::cli
