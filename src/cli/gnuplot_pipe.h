// A script handed to gnuplot.
#pragma once

#include <string>

namespace cosformer::cli {

// Whether gnuplot is there and ran the script to its end. Never ends this program, even when gnuplot does not read.
bool feed_gnuplot(const std::string& script);

}  // namespace cosformer::cli
