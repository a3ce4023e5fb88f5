// A two-document task made from plain articles: were two passages taken from one article? It stands in for AAN pairs
// (LRA's Retrieval) where those cannot be had; numbers on it compare with each other only.
//
// Two passages that do not overlap are drawn from each article, p and q. (p, q) is a pair of class 1; with q from
// another article it is one of class 0. So either document alone, its place and its length tell nothing about the
// class. Articles are dealt out to the parts before pairs are drawn: no article is in two parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "data/dataset/subset.h"

namespace cosformer::data {

struct SameArticleOptions {
  std::uint64_t seed = 0;
  std::size_t train = 20000, valid = 2000, test = 2000;  // pairs
  std::size_t least_length = 1000, most_length = 4000;   // of a passage, in bytes: uniform between
  double valid_fraction = 0.1, test_fraction = 0.1;      // of the articles
};

struct SameArticleSplits {
  DatasetPointer train, valid, test;
  std::size_t articles = 0;  // long enough to be used
  std::size_t too_short = 0;
};

// A text file (gzip or not) of articles separated by blank lines. Those of fewer than 2 * most_length bytes are left
// out. The same file, options and seed give the same pairs. Throws UserError for impossible options and when a part
// would have fewer than two articles.
SameArticleSplits load_same_article(const std::string& path, const SameArticleOptions& options = {});

}  // namespace cosformer::data
