// What people read: aligned columns, short numbers.
#include "base/table.h"

#include <gtest/gtest.h>

#include "base/progress.h"

namespace cosformer {
namespace {

TEST(Table, NumbersToTheRightWordsToTheLeft) {
  Table table({"name", "ms"});
  table.add({"a", "1.50"});
  table.add({"θ-long", "10"});
  EXPECT_EQ(table.text(),
            "name      ms\n"
            "a       1.50\n"
            "θ-long    10\n");
}

TEST(Table, AColumnWithAWordInItIsNotNumeric) {
  Table table({"x", "y"});
  table.add({"1", "22"});
  table.add({"1", "none"});
  EXPECT_EQ(table.text(),
            "x  y\n"
            "1  22\n"
            "1  none\n");
}

TEST(Table, ShortNumbers) {
  EXPECT_EQ(significant(0), "0");
  EXPECT_EQ(significant(1234.5), "1234");
  EXPECT_EQ(significant(1.2345), "1.23");
  EXPECT_EQ(significant(0.0012345), "0.00123");
  EXPECT_EQ(significant(-0.5, 2), "-0.50");
  EXPECT_EQ(significant(1.5e-7), "1.50e-07");
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(34.2e6), "34.2 MB");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-1234), "-1,234");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(human_seconds(4.2), "4 s");
  EXPECT_EQ(human_seconds(125), "2 min 05 s");
  EXPECT_EQ(human_seconds(4800), "1 h 20 min");
}

}  // namespace
}  // namespace cosformer
