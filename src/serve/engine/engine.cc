#include "serve/engine/engine.h"

#include <algorithm>
#include <new>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/core.h>

#include "base/error.h"
#include "serve/engine/token_chances.h"

namespace cosformer::serve {

struct Engine::Active {
  GenerationRequest request;
  Callbacks callbacks;
  std::shared_ptr<Ticket> ticket;
  std::vector<PrefixKey> keys;  // of the prompt, where it begins a text
  Session session;
  bool begun = false;
  std::size_t read = 0, open = 0;  // tokens of the prompt; choices
  at::Tensor sum;                  // of what the model makes of the tokens
  Outcome outcome;
};

struct Engine::Row {
  ActivePointer active;
  std::size_t choice;
  std::shared_ptr<Session> session;
  TextWriting writing;
};

namespace {

constexpr std::size_t kLastCuts = 4;  // a prompt's last ones are kept, whatever snapshot_every says

// What went wrong, for a client: not where in this program.
RequestError error_of(const std::exception& error) {
  if (const auto* own = dynamic_cast<const RequestError*>(&error)) return *own;
  if (dynamic_cast<const UserError*>(&error) != nullptr) return {400, "invalid_request_error", error.what()};
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return {503, "overloaded", "there is not enough memory"};
  if (dynamic_cast<const Failure*>(&error) != nullptr) return {500, "server_error", error.what()};
  return {500, "server_error", "the model could not compute this"};
}

}  // namespace

Engine::Engine(Generator generator, const EngineOptions& options)
    : generator_(std::move(generator)),
      options_(options),
      beginning_(generator_.begin(0)),
      batch_(generator_, options.rows),
      cache_(options.memory),
      cache_memory_(options.memory) {
  const int threads = at::get_num_threads();
  thread_ = std::thread([this, threads] {
    at::set_num_threads(threads);  // a new thread does not know what was set in others
    work();
  });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = draining_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::shared_ptr<Ticket> Engine::submit(GenerationRequest request, Callbacks callbacks) {
  if (request.choices < 1 || static_cast<std::int64_t>(request.choices) > options_.rows) {
    throw RequestError(400, "invalid_request_error",
                       fmt::format("n must be from 1 to {}; got {}", options_.rows, request.choices), "n");
  }
  const Session& from = request.from ? *request.from : beginning_;
  const std::optional<std::int64_t> room = generator_.room(from);
  if (room.has_value() && static_cast<std::int64_t>(request.prompt.size()) > *room) {
    throw RequestError(400, "invalid_request_error",
                       fmt::format("the text would have {} tokens, and the model can read {}",
                                   from.consumed() + static_cast<std::int64_t>(request.prompt.size()),
                                   *generator_.model().longest_stream()),
                       "prompt");
  }
  const auto active = std::make_shared<Active>();
  if (!request.from && !request.embeds) active->keys = prefix_keys(request.prompt, generator_.stretch());
  active->outcome.prompt_tokens = request.prompt.size();
  active->request = std::move(request);
  active->callbacks = std::move(callbacks);
  active->ticket = std::make_shared<Ticket>();
  {
    const std::lock_guard lock(mutex_);
    if (draining_) throw RequestError(503, "overloaded", "the server is shutting down");
    if (waiting_.size() >= options_.queue) {
      throw RequestError(429, "overloaded", fmt::format("{} requests wait already; try again later", waiting_.size()));
    }
    waiting_.push_back(active);
    ++open_;
  }
  changed_.notify_all();
  return active->ticket;
}

void Engine::drain() {
  std::unique_lock lock(mutex_);
  draining_ = true;
  ended_.wait(lock, [&] { return open_ == 0; });
}

EngineFigures Engine::figures() const {
  const std::lock_guard lock(mutex_);
  EngineFigures figures = figures_;
  figures.waiting = waiting_.size();
  return figures;
}

void Engine::update_figures() {
  const std::lock_guard lock(mutex_);
  figures_.reading = reading_.size();
  figures_.writing = rows_.size();
  figures_.cached_states = cache_.size();
  figures_.cached_bytes = cache_.bytes();
}

void Engine::work() {
  const at::NoGradGuard no_grad;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty() || !reading_.empty() || !rows_.empty(); });
      if (stopping_) {
        for (const auto& list : {waiting_, reading_}) {
          for (const ActivePointer& active : list) active->ticket->cancel();
        }
        for (const Row& row : rows_) row.active->ticket->cancel();
      }
      if (stopping_ && waiting_.empty() && reading_.empty() && rows_.empty()) return;
    }
    cache_.set_most_bytes(cache_memory_);
    drop_cancelled();
    admit();
    if (!reading_.empty()) read_one_stretch();
    if (!rows_.empty()) step();
    update_figures();
  }
}

void Engine::admit() {
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty()) {
    const std::size_t more = waiting_.front()->request.choices;
    if (choices_ > 0 && choices_ + more > static_cast<std::size_t>(options_.rows)) return;
    choices_ += more;
    reading_.push_back(waiting_.front());
    waiting_.pop_front();
  }
}

void Engine::drop_cancelled() {
  std::vector<ActivePointer> dropped;
  const auto drop_from = [&](std::deque<ActivePointer>& list) {
    const auto gone = std::stable_partition(list.begin(), list.end(),
                                            [](const ActivePointer& active) { return !active->ticket->cancelled(); });
    dropped.insert(dropped.end(), gone, list.end());
    const auto count = static_cast<std::size_t>(list.end() - gone);
    list.erase(gone, list.end());
    return count;
  };
  {
    const std::lock_guard lock(mutex_);
    drop_from(waiting_);
  }
  const std::size_t never_begun = dropped.size();
  drop_from(reading_);
  for (std::size_t at = 0; at < dropped.size(); ++at) {
    if (at >= never_begun) choices_ -= dropped[at]->request.choices;
    if (dropped[at]->begun && dropped[at]->request.keeps_session) dropped[at]->outcome.session = dropped[at]->session;
    end(*dropped[at]);
  }
  std::vector<std::int64_t> rows;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row].active->ticket->cancelled()) rows.push_back(static_cast<std::int64_t>(row));
  }
  retire(rows);
}

void Engine::begin_reading(Active& active) {
  active.begun = true;
  if (active.request.from) {
    active.session = *std::exchange(active.request.from, std::nullopt);
  } else if (std::optional<PrefixCache::Hit> hit = cache_.find(active.keys)) {
    active.session = std::move(hit->session);
    active.read = active.outcome.cached_tokens = hit->tokens;
  } else {
    active.session = beginning_;
  }
  if (active.request.seed) active.session.seed = *active.request.seed;
}

// The requests that read take turns.
void Engine::read_one_stretch() {
  const ActivePointer active = reading_.front();
  reading_.pop_front();
  try {
    if (!active->begun) begin_reading(*active);
    const std::span<const std::int32_t> left = std::span(active->request.prompt).subspan(active->read);
    if (!left.empty()) {
      at::Tensor hidden;
      const std::size_t before = active->read;
      active->read += generator_.read_stretch(active->session, left, active->request.embeds ? &hidden : nullptr);
      if (hidden.defined()) {
        const at::Tensor sum = hidden.to(at::kCPU, at::kDouble).sum(0);
        active->sum = active->sum.defined() ? active->sum + sum : sum;
      }
      {
        const std::lock_guard lock(mutex_);
        figures_.prompt_tokens += active->read - before;
      }
      keep_snapshot(*active, before);
    }
    if (active->read < active->request.prompt.size()) {
      reading_.push_back(active);
      return;
    }
    begin_writing(active);
  } catch (const std::exception& error) {
    const RequestError told = error_of(error);
    choices_ -= active->request.choices;
    end(*active, &told);
  }
}

void Engine::keep_snapshot(Active& active, std::size_t before) {
  const auto key = std::find_if(active.keys.begin(), active.keys.end(),
                                [&](const PrefixKey& each) { return each.tokens == active.read; });
  if (key == active.keys.end()) return;
  const auto from_end = static_cast<std::size_t>(active.keys.end() - key) - 1;
  const auto every = static_cast<std::size_t>(options_.snapshot_every);
  const bool is_due = active.read / every != before / every;
  const bool is_last = from_end <= (active.session.state.has_cache() ? 1 : kLastCuts);
  if (!is_last && (!is_due || active.session.state.has_cache())) return;
  Session kept = active.session;
  if (from_end > 0) kept.logits = at::Tensor();
  cache_.put(*key, kept);
}

void Engine::begin_writing(const ActivePointer& active) {
  if (active->outcome.cached_tokens > 0) {
    const std::lock_guard lock(mutex_);
    figures_.cached_tokens += active->outcome.cached_tokens;
  }
  const GenerationRequest& request = active->request;
  if (active->sum.defined()) {
    const at::Tensor mean = (active->sum / static_cast<double>(request.prompt.size())).to(at::kFloat).contiguous();
    active->outcome.embedding.assign(mean.data_ptr<float>(), mean.data_ptr<float>() + mean.numel());
  }
  if (request.embeds) {
    choices_ -= request.choices;
    return end(*active);
  }
  active->open = request.choices;
  std::vector<std::shared_ptr<Session>> joining;
  std::vector<Row> over;
  for (std::size_t choice = 0; choice < request.choices; ++choice) {
    auto session = std::make_shared<Session>(active->session);
    session->seed += choice;
    Row row{active, choice, session, TextWriting(generator_, *session, request.writing)};
    if (row.writing.done()) {
      over.push_back(std::move(row));
      continue;
    }
    joining.push_back(session);
    rows_.push_back(std::move(row));
  }
  active->session = Session();
  batch_.join(std::move(joining));
  for (Row& row : over) end_row(row);
}

// Each row's next token is told before the model reads it.
void Engine::step() {
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> failed;
  for (std::size_t at = 0; at < rows_.size(); ++at) {
    Row& row = rows_[at];
    const GenerationRequest& request = row.active->request;
    try {
      TokenChance chance;
      chance.token = generator_.chosen(*row.session, batch_.consumed(at), request.writing.sampling);
      if (request.likeliest >= 0) chance = chance_of(*row.session, chance.token, request.likeliest);
      tokens.push_back(chance.token);
      ++row.active->outcome.completion_tokens;
      const std::string text = row.writing.push(chance.token);
      if (row.active->callbacks.token) row.active->callbacks.token(row.choice, text, chance);
    } catch (const std::exception& error) {
      tokens.resize(at + 1, 0);
      failed.push_back(static_cast<std::int64_t>(at));
      row.active->outcome.error = error_of(error);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    figures_.completion_tokens += tokens.size();
    ++figures_.steps;
  }
  std::vector<std::int64_t> done = failed;
  try {
    batch_.read(tokens);
  } catch (const std::exception& error) {
    done.clear();
    for (std::size_t at = 0; at < rows_.size(); ++at) {
      rows_[at].active->outcome.error = error_of(error);
      done.push_back(static_cast<std::int64_t>(at));
    }
  }
  for (std::size_t at = 0; at < rows_.size(); ++at) {
    if (rows_[at].writing.done()) done.push_back(static_cast<std::int64_t>(at));
  }
  std::sort(done.begin(), done.end());
  done.erase(std::unique(done.begin(), done.end()), done.end());
  retire(done);
}

void Engine::retire(const std::vector<std::int64_t>& rows) {
  if (rows.empty()) return;
  for (const std::int64_t row : rows) {
    Row& leaving = rows_[static_cast<std::size_t>(row)];
    if (!leaving.active->request.keeps_session || leaving.choice > 0) leaving.session.reset();
  }
  batch_.leave(rows);
  std::vector<Row> gone;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    gone.push_back(std::move(rows_[static_cast<std::size_t>(*row)]));
    rows_.erase(rows_.begin() + *row);
  }
  for (auto row = gone.rbegin(); row != gone.rend(); ++row) end_row(*row);
}

void Engine::end_row(Row& row) {
  Active& active = *row.active;
  if (row.session && active.request.keeps_session && row.choice == 0) active.outcome.session = *row.session;
  const std::string rest = row.writing.finish();
  if (active.callbacks.choice_end && !active.outcome.error && !active.ticket->cancelled()) {
    active.callbacks.choice_end(row.choice, rest, row.writing.ended_by());
  }
  --choices_;
  if (--active.open == 0) end(active);
}

void Engine::end(Active& active, const RequestError* error) {
  if (error != nullptr) active.outcome.error = *error;
  active.outcome.cancelled = active.ticket->cancelled();
  update_figures();
  if (active.callbacks.end) active.callbacks.end(std::move(active.outcome));
  {
    const std::lock_guard lock(mutex_);
    --open_;
  }
  ended_.notify_all();
}

}  // namespace cosformer::serve
