// Rows and fields, quoting and line numbers.
#include "data/readers/delimited_text.h"

#include <gtest/gtest.h>

namespace cosformer::data {
namespace {

using Fields = std::vector<std::string>;

std::vector<DelimitedText::Row> rows_of(std::string_view text, char delimiter = ',',
                                        Quoting quoting = Quoting::kRfc4180) {
  DelimitedText reader(text, delimiter, quoting);
  std::vector<DelimitedText::Row> rows;
  for (DelimitedText::Row row; reader.next(row);) rows.push_back(row);
  return rows;
}

TEST(DelimitedText, PlainRowsKeepQuotesAndEmptyFields) {
  const auto rows = rows_of("a\t\"b\t\r\n\n\n\tc\rd", '\t', Quoting::kNone);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].fields, (Fields{"a", "\"b", ""}));
  EXPECT_EQ(rows[0].line, 1U);
  EXPECT_EQ(rows[1].fields, (Fields{"", "c\rd"})) << "a lone CR is not a line's end";
  EXPECT_EQ(rows[1].line, 4U);
}

TEST(DelimitedText, QuotedFields) {
  const auto rows = rows_of("\xef\xbb\xbfx,\"a \"\"b\"\", c\",\"two\r\nlines\"\n\"\",5\" tall,\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].fields, (Fields{"x", "a \"b\", c", "two\r\nlines"}));
  EXPECT_EQ(rows[1].fields, (Fields{"", "5\" tall", ""}));
  EXPECT_EQ(rows[1].line, 3U) << "the quoted line break counts";
}

TEST(DelimitedText, QuotedFieldAtTheVeryEnd) {
  const auto rows = rows_of("a,\"b\"");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].fields, (Fields{"a", "b"}));
}

TEST(DelimitedText, TextAfterAClosingQuoteSpoilsOneRow) {
  const auto rows = rows_of("\"a\"b,c\nd,e\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NE(rows[0].problem.find("text follows a closing quote"), std::string::npos);
  EXPECT_EQ(rows[1].fields, (Fields{"d", "e"}));
  EXPECT_EQ(rows[1].line, 2U);
  EXPECT_EQ(rows[1].problem, "");
}

TEST(DelimitedText, UnclosedQuoteEndsTheText) {
  const auto rows = rows_of("a\n\"b\nc\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NE(rows[1].problem.find("never closed"), std::string::npos);
  EXPECT_EQ(rows[1].line, 2U);
}

}  // namespace
}  // namespace cosformer::data
