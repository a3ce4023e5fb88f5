// Sequences of numbers and tokens from CSV.
#include "data/readers/number_reader.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "data/dataset_content.h"

namespace cosformer::data {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::token_ids;
using cosformer::testing::values;
using cosformer::testing::write_bytes;
using ::testing::IsSubstring;

class NumberReader : public ::testing::Test {
 protected:
  Loaded load(const std::string& content, const NumberOptions& options = {}) const {
    write_bytes(path_, content);
    return load_numbers(path_, options);
  }
  std::string refusal(const std::string& content, const NumberOptions& options = {}) const {
    return message_of<UserError>([&] { load(content, options); });
  }
  static NumberOptions tokens() {
    NumberOptions options;
    options.content = Content::kTokens;
    return options;
  }
  const TemporaryDirectory directory_;
  const std::string path_ = directory_.file("a.csv");
};

TEST_F(NumberReader, RealValuesOfDifferentLengths) {
  const Loaded loaded = load("b,1.5,-2e3, +3\na,0.25\n");
  ASSERT_EQ(loaded.dataset->size(), 2U);
  EXPECT_EQ(values(loaded.dataset->get(0).first, 1.0F), (std::vector<float>{1.5F, -2000.0F, 3.0F}));
  EXPECT_EQ(loaded.dataset->lengths(1).first, 1);
  EXPECT_EQ(loaded.dataset->label(0), 1);
  EXPECT_EQ(loaded.dataset->info().content, Content::kValues);
  EXPECT_EQ(loaded.dataset->info().vocabulary, 0);
}

TEST_F(NumberReader, LabelColumnByName) {
  NumberOptions options;
  options.label_column = "y";
  options.delimiter = ';';
  const Loaded loaded = load("x1;y;x2\n1;cat;2\n", options);
  EXPECT_EQ(values(loaded.dataset->get(0).first, 1.0F), (std::vector<float>{1, 2}));
  EXPECT_EQ(loaded.dataset->info().classes, std::vector<std::string>{"cat"});
  options.label_column = "z";
  EXPECT_PRED_FORMAT2(IsSubstring, "there is no column 'z'; it has 'x1', 'y', 'x2'", refusal("x1;y;x2\n", options));
}

TEST_F(NumberReader, TokensTakeTheNarrowestType) {
  const auto type_for = [&](const std::string& greatest) {
    const Loaded loaded = load("0,1," + greatest + "\n", tokens());
    EXPECT_EQ(loaded.dataset->info().vocabulary, std::stol(greatest) + 3);
    EXPECT_EQ(token_ids(loaded.dataset->get(0).first), (std::vector<std::int32_t>{3, std::stoi(greatest) + 2}));
    return loaded.dataset->get(0).first.type;
  };
  EXPECT_EQ(type_for("255"), ElementType::kU8);
  EXPECT_EQ(type_for("256"), ElementType::kU16);
  EXPECT_EQ(type_for("65535"), ElementType::kU16);
  EXPECT_EQ(type_for("65536"), ElementType::kI32);
  EXPECT_EQ(type_for("2147483645"), ElementType::kI32);
}

TEST_F(NumberReader, BrokenRows) {
  EXPECT_PRED_FORMAT2(IsSubstring, "line 2: column 3 is 'x'; expected a finite number", refusal("0,1\n0,1,x\n"));
  EXPECT_PRED_FORMAT2(IsSubstring, "column 2 is ''; expected a finite number", refusal("0,,1\n"));
  EXPECT_PRED_FORMAT2(IsSubstring, "column 2 is '1e99', which is out of range", refusal("0,1e99\n"));
  EXPECT_PRED_FORMAT2(IsSubstring, "column 2 is 'nan'; expected a finite number", refusal("0,nan\n"));
  EXPECT_PRED_FORMAT2(IsSubstring, "it has 1 columns; expected at least 2, the label and a number", refusal("0\n"));
  EXPECT_PRED_FORMAT2(IsSubstring, "the label is empty", refusal(",1\n"));
  EXPECT_PRED_FORMAT2(IsSubstring, "line 1: a quote is opened and never closed", refusal("0,\"1\n"));
  EXPECT_PRED_FORMAT2(IsSubstring, "column 2 is '1.5'; expected a whole number from 0 on",
                      refusal("0,1.5\n", tokens()));
  EXPECT_PRED_FORMAT2(IsSubstring, "column 2 is -1; expected a token from 0 to 2147483645",
                      refusal("0,-1\n", tokens()));
  EXPECT_PRED_FORMAT2(IsSubstring, "out of range", refusal("0,99999999999999999999\n", tokens()));
  NumberOptions small = tokens();
  small.vocabulary = 7;
  EXPECT_PRED_FORMAT2(IsSubstring, "column 2 is 5; expected a token from 0 to 4", refusal("0,5\n", small));
  small.vocabulary = 2;
  EXPECT_PRED_FORMAT2(IsSubstring, "holds no token; expected at least 3", refusal("0,5\n", small));

  NumberOptions skip;
  skip.rows.skip_bad_rows = true;
  const Loaded loaded = load("0,1,2\n0,1,x\n1,3\n", skip);
  EXPECT_EQ(loaded.dataset->size(), 2U);
  EXPECT_EQ(values(loaded.dataset->get(1).first, 1.0F), std::vector<float>{3}) << "a bad row leaves nothing behind";
  EXPECT_EQ(loaded.report.rows_skipped, 1U);
}

}  // namespace
}  // namespace cosformer::data
