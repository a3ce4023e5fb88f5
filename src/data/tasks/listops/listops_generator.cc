#include "data/tasks/listops/listops_generator.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parallel.h"
#include "base/random.h"
#include "data/tasks/listops/listops.h"

namespace cosformer::data {
namespace {

using listops::Symbol;

constexpr double kOperatorProbability = 0.25;
constexpr std::size_t kTreesPerPiece = 4096;
constexpr std::size_t kPiecesPerThread = 8;
// Trees without a new one among them after which the window is taken to be exhausted.
constexpr std::size_t kFruitlessTrees = 8'000'000;

void require_possible(const ListOpsOptions& options) {
  const auto refuse = [](const std::string& what) { throw UserError("cannot generate ListOps with " + what); };
  if (options.max_depth < 1 || options.max_depth > 64) {
    refuse(fmt::format("max_depth {}; expected 1 to 64", options.max_depth));
  }
  if (options.max_arguments < 2 || options.max_arguments > 1000) {
    refuse(fmt::format("max_arguments {}; expected 2 to 1000", options.max_arguments));
  }
  if (options.longer_than < 0 || options.shorter_than < options.longer_than + 2 || options.shorter_than > 10'000'000) {
    refuse(
        fmt::format("lengths longer than {} and shorter than {}; expected a window that holds a length, up to 10000000",
                    options.longer_than, options.shorter_than));
  }
}

class TreeMaker {
 public:
  TreeMaker(const ListOpsOptions& options, Random random, std::vector<Symbol>& symbols)
      : options_(options), random_(random), symbols_(symbols), limit_(static_cast<std::size_t>(options.shorter_than)) {}

  // Appends one tree; false when it is too long, in which case what was appended is a part of it.
  bool add_node(int depth = 1) {
    if (symbols_.size() + 1 >= limit_) return false;
    const bool may_branch = depth < options_.max_depth;
    if (!may_branch || random_.unit() > kOperatorProbability) {
      symbols_.push_back(static_cast<Symbol>(listops::kDigit0 + random_.below(10)));
      return true;
    }
    symbols_.push_back(static_cast<Symbol>(random_.below(listops::kOperators)));
    const auto arguments = 2 + static_cast<int>(random_.below(static_cast<std::uint64_t>(options_.max_arguments - 1)));
    for (int i = 0; i < arguments; ++i) {
      if (!add_node(depth + 1)) return false;
    }
    symbols_.push_back(listops::kEnd);
    return symbols_.size() < limit_;
  }

 private:
  const ListOpsOptions& options_;
  Random random_;
  std::vector<Symbol>& symbols_;
  std::size_t limit_;
};

// The trees of one piece that are in the window, end to end.
struct Piece {
  std::vector<Symbol> symbols;
  std::vector<std::size_t> ends;
};

Piece make_piece(const ListOpsOptions& options, std::uint64_t first_tree) {
  Piece piece;
  std::vector<Symbol> tree;
  for (std::uint64_t number = first_tree; number < first_tree + kTreesPerPiece; ++number) {
    tree.clear();
    TreeMaker maker(options, Random(options.seed, RandomStream::kListOps, number), tree);
    if (!maker.add_node() || static_cast<std::int64_t>(tree.size()) <= options.longer_than) continue;
    piece.symbols.insert(piece.symbols.end(), tree.begin(), tree.end());
    piece.ends.push_back(piece.symbols.size());
  }
  return piece;
}

// Accepts different trees until there are enough.
class Collection {
 public:
  explicit Collection(std::size_t wanted) : wanted_(wanted) { accepted_.reserve(wanted); }

  void take(std::shared_ptr<const Piece> piece) {
    std::size_t begin = 0;
    bool used = false;
    for (const std::size_t end : piece->ends) {
      if (full()) break;
      const auto* text = reinterpret_cast<const char*>(piece->symbols.data());
      const std::string_view tree(text + begin, end - begin);
      begin = end;
      if (!seen_.insert(tree).second) continue;
      accepted_.push_back(tree);
      used = true;
    }
    if (used) kept_.push_back(std::move(piece));
  }

  bool full() const { return accepted_.size() >= wanted_; }
  const std::vector<std::string_view>& accepted() const { return accepted_; }

 private:
  std::size_t wanted_;
  std::unordered_set<std::string_view> seen_;
  std::vector<std::string_view> accepted_;
  std::vector<std::shared_ptr<const Piece>> kept_;  // what the views refer to
};

std::shared_ptr<const ArrayDataset> to_dataset(std::span<const std::string_view> trees, const std::string& provenance) {
  DatasetBuilder builder(ElementType::kU8);
  for (const std::string_view tree : trees) {
    const auto* symbols = reinterpret_cast<const Symbol*>(tree.data());
    builder.add(tree, listops::evaluate({symbols, tree.size()}));
  }
  DatasetInfo info;
  info.name = "listops";
  info.vocabulary = listops::kSymbols + kFirstToken;
  for (int digit = 0; digit < 10; ++digit) info.classes.push_back(std::to_string(digit));
  info.provenance = provenance;
  return builder.finish(std::move(info));
}

}  // namespace

std::string provenance_of(const ListOpsOptions& options) {
  return nlohmann::json{{"generator", "listops"},
                        {"version", 1},
                        {"seed", options.seed},
                        {"train", options.train},
                        {"valid", options.valid},
                        {"test", options.test},
                        {"max_depth", options.max_depth},
                        {"max_arguments", options.max_arguments},
                        {"longer_than", options.longer_than},
                        {"shorter_than", options.shorter_than}}
      .dump();
}

Splits generate_listops(const ListOpsOptions& options, const Progress& progress) {
  require_possible(options);
  const unsigned threads = thread_count(options.threads);
  const std::size_t wanted = options.train + options.valid + options.test;
  Collection collection(wanted);
  std::uint64_t next_tree = 0, last_fruitful = 0;
  while (!collection.full()) {
    std::vector<std::shared_ptr<Piece>> pieces(threads * kPiecesPerThread);
    run_pieces(pieces.size(), threads, [&](std::size_t i) {
      pieces[i] = std::make_shared<Piece>(make_piece(options, next_tree + i * kTreesPerPiece));
    });
    const std::size_t before = collection.accepted().size();
    for (auto& piece : pieces) collection.take(std::move(piece));
    next_tree += pieces.size() * kTreesPerPiece;
    if (collection.accepted().size() > before) last_fruitful = next_tree;
    if (next_tree - last_fruitful > kFruitlessTrees) {
      throw UserError(
          fmt::format("cannot generate {} different ListOps expressions: found {} longer than {} and shorter than {} "
                      "symbols; ask for fewer or widen the window",
                      wanted, collection.accepted().size(), options.longer_than, options.shorter_than));
    }
    if (progress) progress(collection.accepted().size(), wanted);
  }
  const std::span<const std::string_view> all = collection.accepted();
  const std::string provenance = provenance_of(options);
  return {to_dataset(all.subspan(0, options.train), provenance),
          to_dataset(all.subspan(options.train, options.valid), provenance),
          to_dataset(all.subspan(options.train + options.valid, options.test), provenance)};
}

Splits open_or_generate_listops(const std::string& folder, const ListOpsOptions& options, const Progress& progress) {
  return open_or_generate(folder, "listops", provenance_of(options),
                          [&] { return generate_listops(options, progress); });
}

}  // namespace cosformer::data
