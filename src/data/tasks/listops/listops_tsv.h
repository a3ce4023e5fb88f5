// The published form of ListOps: a TSV file with the header `Source<TAB>Target`, each tree a parenthesised left fold.
#pragma once

#include <string>

#include "data/dataset/row_report.h"

namespace cosformer::data {

// Accepts expressions with and without parentheses. A row is bad when it is not one whole expression and its value.
Loaded load_listops_tsv(const std::string& path, RowPolicy policy = {});

void write_listops_tsv(const std::string& path, const Dataset& dataset);

}  // namespace cosformer::data
