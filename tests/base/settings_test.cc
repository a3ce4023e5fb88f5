// Defaults, then a file, then assignments; unknown keys, wrong values and where they are said to be.
#include "base/settings.h"

#include <functional>

#include <gtest/gtest.h>

#include "base/error.h"

namespace cosformer {
namespace {

struct Values {
  bool flag = false;
  std::int64_t count = 3;
  double rate = 0.001;
  std::string kind = "a";
  std::vector<std::string> names;

  Settings settings() {
    Settings s;
    s.add("kind", kind, "one of two", {"a", "b"});
    s.add("part.flag", flag, "a flag");
    s.add("part.count", count, "a count", 1, 10);
    s.add("part.rate", rate, "a rate");
    s.add("part.names", names, "some names");
    return s;
  }
};

std::string refusal(const std::function<void(Settings&)>& act) {
  Values values;
  Settings settings = values.settings();
  try {
    act(settings);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Settings, FileThenAssignments) {
  Values values;
  Settings settings = values.settings();
  settings.read_toml("kind = \"b\"\n[part]\nflag = true\ncount = 7\nrate = 1e-4\nnames = [\"x\", \"y z\"]\n", "f");
  settings.assign("part.count=9");
  EXPECT_EQ(values.kind, "b");
  EXPECT_TRUE(values.flag);
  EXPECT_EQ(values.count, 9);
  EXPECT_EQ(values.rate, 1e-4);
  EXPECT_EQ(values.names, (std::vector<std::string>{"x", "y z"}));
  EXPECT_TRUE(settings.was_set("part.rate"));
  EXPECT_FALSE(Values().settings().was_set("part.rate"));
}

TEST(Settings, SectionsThatWereRenamedAreReadByBothNames) {
  Values values;
  Settings settings = values.settings();
  settings.rename_section("piece", "part");
  settings.read_toml("[piece]\ncount = 7\n", "f");
  settings.assign("piece.rate=0.5");
  EXPECT_EQ(values.count, 7);
  EXPECT_EQ(values.rate, 0.5);
  EXPECT_TRUE(settings.was_set("part.count"));
  EXPECT_EQ(settings.toml().find("piece"), std::string::npos);
  EXPECT_THROW(settings.assign("piece.absent=1"), UserError);
}

TEST(Settings, WhatIsWrittenReadsBack) {
  Values values;
  values.rate = 0.1 + 0.2;
  values.kind = "b";
  values.names = {"quote\" and \\ and\ttab", "ü"};
  values.count = 10;
  Values back;
  back.settings().read_toml(values.settings().toml(), "again");
  EXPECT_EQ(back.rate, values.rate);
  EXPECT_EQ(back.names, values.names);
  EXPECT_EQ(back.settings().toml(), values.settings().toml());
}

TEST(Settings, RefusalsNameThePlaceAndTheNearestKey) {
  const std::string unknown = refusal([](Settings& s) { s.read_toml("[part]\n\ncuont = 3\n", "my.toml"); });
  EXPECT_NE(unknown.find("my.toml:3"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("did you mean 'part.count'"), std::string::npos) << unknown;
  const std::string section = refusal([](Settings& s) { s.assign("rate=1"); });
  EXPECT_NE(section.find("did you mean 'part.rate'"), std::string::npos) << section;
  const std::string limits = refusal([](Settings& s) { s.assign("part.count=11"); });
  EXPECT_NE(limits.find("from 1 to 10"), std::string::npos) << limits;
  const std::string choice = refusal([](Settings& s) { s.assign("kind=c"); });
  EXPECT_NE(choice.find("one of a, b"), std::string::npos) << choice;
  for (const char* bad : {"part.rate=fast", "part.rate=nan", "part.rate=1x", "part.count=1.5", "part.flag=1", "kind"}) {
    EXPECT_NE(refusal([&](Settings& s) { s.assign(bad); }), "accepted") << bad;
  }
  const std::string syntax = refusal([](Settings& s) { s.read_toml("kind = \"a\"\nflag = = 3\n", "my.toml"); });
  EXPECT_NE(syntax.find("my.toml:2"), std::string::npos) << syntax;
  EXPECT_NE(refusal([](Settings& s) { s.read_toml("kind = [\"a\"]", "f"); }), "accepted");
  EXPECT_NE(refusal([](Settings& s) { s.read_toml_file("/nonexistent/settings.toml"); }), "accepted");
}

}  // namespace
}  // namespace cosformer
