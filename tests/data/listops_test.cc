// ListOps expressions: values against an independent evaluation of random trees, text forms, the published TSV.
#include "data/tasks/listops/listops.h"

#include <algorithm>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "data/dataset_content.h"
#include "data/tasks/listops/listops_generator.h"
#include "data/tasks/listops/listops_tsv.h"

namespace cosformer::data::listops {
namespace {

using cosformer::testing::content_of;
using cosformer::testing::message_of;
using cosformer::testing::read_bytes;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::write_bytes;
using ::testing::IsSubstring;

// A tree with its own idea of its value and its published text, sharing nothing with the code under test.
struct Tree {
  std::string name;  // empty: a digit
  int digit = 0;
  std::vector<Tree> children;

  static Tree random(std::mt19937& generator, int depth) {
    Tree tree;
    if (depth == 0 || generator() % 3 == 0) {
      tree.digit = static_cast<int>(generator() % 10);
      return tree;
    }
    tree.name = std::vector<std::string>{"[MIN", "[MAX", "[MED", "[SM"}[generator() % 4];
    for (unsigned n = 1 + generator() % 6; n > 0; --n) tree.children.push_back(random(generator, depth - 1));
    return tree;
  }

  int value() const {
    if (name.empty()) return digit;
    std::vector<int> v;
    for (const Tree& child : children) v.push_back(child.value());
    std::sort(v.begin(), v.end());
    if (name == "[MIN") return v.front();
    if (name == "[MAX") return v.back();
    int sum = 0;
    for (const int x : v) sum += x;
    if (name == "[SM") return sum % 10;
    const std::size_t half = v.size() / 2;
    return v.size() % 2 == 1 ? v[half] : static_cast<int>((v[half - 1] + v[half]) / 2.0);
  }

  std::string text() const {
    if (name.empty()) return std::to_string(digit);
    std::string result = name;
    for (const Tree& child : children) result += " " + child.text();
    return result + " ]";
  }

  std::string published() const {
    if (name.empty()) return std::to_string(digit);
    std::string fold = "( " + name + " " + children[0].published() + " )";
    for (std::size_t i = 1; i < children.size(); ++i) fold = "( " + fold + " " + children[i].published() + " )";
    return "( " + fold + " ] )";
  }
};

TEST(ListOps, ValuesAndTextsOfRandomTrees) {
  std::mt19937 generator(20);
  for (int round = 0; round < 3000; ++round) {
    const Tree tree = Tree::random(generator, 1 + round % 5);
    const std::vector<Symbol> symbols = parse(tree.text());
    ASSERT_EQ(evaluate(symbols), tree.value()) << tree.text();
    ASSERT_EQ(to_text(symbols), tree.text());
    ASSERT_EQ(to_published_text(symbols), tree.published());
    ASSERT_EQ(parse(tree.published()), symbols);
  }
}

TEST(ListOps, MedianIsTruncated) {
  EXPECT_EQ(evaluate(parse("[MED 2 3 ]")), 2);
  EXPECT_EQ(evaluate(parse("[MED 9 0 4 ]")), 4);
  EXPECT_EQ(evaluate(parse("[MED 9 9 0 8 ]")), 8);
}

std::string refusal(const std::string& text) {
  return message_of<UserError>([&] { evaluate(parse(text)); });
}

TEST(ListOps, BrokenExpressions) {
  EXPECT_PRED_FORMAT2(IsSubstring, "the expression is empty", refusal(" ( ) "));
  EXPECT_PRED_FORMAT2(IsSubstring, "'[AVG' is not a ListOps symbol", refusal("[AVG 1 ]"));
  EXPECT_PRED_FORMAT2(IsSubstring, "symbol 2 of the expression follows after its end", refusal("1 2"));
  EXPECT_PRED_FORMAT2(IsSubstring, "symbol 1 of the expression closes a list that was never opened", refusal("]"));
  EXPECT_PRED_FORMAT2(IsSubstring, "symbol 2 of the expression closes a list without a digit", refusal("[MIN ]"));
  EXPECT_PRED_FORMAT2(IsSubstring, "ends with 2 lists still open", refusal("[MIN 1 [MAX 2"));
  EXPECT_LT(refusal(std::string(100000, 'x')).size(), 200U);
  const std::vector<Symbol> unknown = {15};
  EXPECT_THROW(evaluate(unknown), UserError);
}

TEST(ListOps, DepthIsNoDanger) {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += "[SM ";
  text += "7";
  for (int i = 0; i < 200000; ++i) text += " ]";
  EXPECT_EQ(evaluate(parse(text)), 7);
}

TEST(ListOpsTsv, RoundTrip) {
  const TemporaryDirectory directory;
  ListOpsOptions options;
  options.train = 50;
  options.valid = options.test = 0;
  options.longer_than = 10;
  options.shorter_than = 100;
  const Splits splits = generate_listops(options);
  const std::string path = directory.file("basic_train.tsv");
  write_listops_tsv(path, *splits.train);
  EXPECT_TRUE(read_bytes(path).starts_with("Source\tTarget\n( "));
  const Loaded loaded = load_listops_tsv(path);
  EXPECT_EQ(content_of(*loaded.dataset), content_of(*splits.train));
  EXPECT_EQ(loaded.dataset->info().vocabulary, 17);
  EXPECT_EQ(loaded.report.rows_used, 50U);
}

TEST(ListOpsTsv, BrokenRows) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("bad.tsv");
  const auto reason = [&](const std::string& row) {
    write_bytes(path, "Source\tTarget\r\n( ( [MAX 2 ) ] )\t2\r\n" + row + "\r\n");
    return message_of<UserError>([&] { load_listops_tsv(path); });
  };
  EXPECT_PRED_FORMAT2(IsSubstring, "'" + path + "' line 3: it has 1 columns; expected 2", reason("[MAX 2 ]"));
  EXPECT_PRED_FORMAT2(IsSubstring, "line 3: the value is '12'; expected a digit", reason("[MAX 2 ]\t12"));
  EXPECT_PRED_FORMAT2(IsSubstring, "given as 3, but the expression's is 2", reason("[MAX 2 ]\t3"));
  EXPECT_PRED_FORMAT2(IsSubstring, "lists still open", reason("[MAX 2\t2"));
  EXPECT_PRED_FORMAT2(IsSubstring, "--skip-bad-rows", reason("[MAX ?\t2"));

  const Loaded loaded = load_listops_tsv(path, {.skip_bad_rows = true});
  EXPECT_EQ(loaded.report.rows_used, 1U);
  EXPECT_EQ(loaded.report.rows_skipped, 1U);
  ASSERT_EQ(loaded.report.first_reasons.size(), 1U);
  EXPECT_PRED_FORMAT2(IsSubstring, "line 3: '?' is not a ListOps symbol", loaded.report.first_reasons[0]);

  write_bytes(path, "Source\tTarget\nx\t1\n");
  EXPECT_PRED_FORMAT2(IsSubstring, "it holds no usable row (1 were skipped; the first: ", message_of<UserError>([&] {
                        load_listops_tsv(path, {.skip_bad_rows = true});
                      }));
}

}  // namespace
}  // namespace cosformer::data::listops
