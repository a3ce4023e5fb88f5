// TOML as a flat list: keys of sections and arrays of tables, texts of values, places.
#include "base/formats/toml_values.h"

#include <map>

#include <gtest/gtest.h>

#include "base/error.h"

namespace cosformer {
namespace {

TEST(TomlValues, FlattensSectionsListsAndArraysOfTables) {
  const std::string text =
      "[train]\n"
      "lr = 0.5\n"
      "flip = true\n"
      "[[cell]]\n"
      "name = \"first\"\n"
      "set = [\"a=1\", \"b=2\"]\n"
      "[[cell]]\n"
      "name = \"second\"\n"
      "[compare]\n"
      "lengths = []\n";
  std::map<std::string, TomlValue> values;
  for (const TomlValue& value : toml_values(text, "file.toml")) values[value.key] = value;
  ASSERT_EQ(values.size(), 6U);
  EXPECT_EQ(values["train.lr"].items, (std::vector<std::string>{"0.5"}));
  EXPECT_EQ(values["train.lr"].where, "file.toml:2");
  EXPECT_FALSE(values["train.lr"].is_list);
  EXPECT_EQ(values["train.flip"].items.front(), "true");
  EXPECT_EQ(values["cell[0].set"].items, (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_TRUE(values["cell[0].set"].is_list);
  EXPECT_EQ(values["cell[1].name"].items.front(), "second");
  EXPECT_EQ(values["cell[1].name"].where, "file.toml:8");
  EXPECT_TRUE(values["compare.lengths"].items.empty());
}

TEST(TomlValues, RefusesWhatItCannotRead) {
  EXPECT_THROW(toml_values("a = ", "file.toml"), UserError);
  EXPECT_THROW(toml_values("a = 1979-05-27", "file.toml"), UserError);
  EXPECT_THROW(toml_values("a = [[1], [2]]", "file.toml"), UserError);
  EXPECT_THROW(toml_values_of_file("no/such/file.toml"), UserError);
}

}  // namespace
}  // namespace cosformer
