// Drawing through gnuplot: a script's body drawn as SVG and as PNG.
#pragma once

#include <string>

namespace cosformer::cli {

// A text as gnuplot's single-quoted one.
std::string gnuplot_quoted(const std::string& text);

// An inline data block: "$NAME << EOD" … Lines end in newlines.
std::string gnuplot_data(const std::string& name, const std::string& lines);

// An axis of steps up to `last`, from 0 on: thousands as "20k" where tics are whole ones, else in full.
std::string gnuplot_step_axis(long long last);

struct GnuplotSize {
  int width = 900, height = 480;
};

// Whether gnuplot is there and took the script without complaint.
bool run_gnuplot(const std::string& script);

// Draws `body` (all but terminal and output) to PATH.svg and PATH.png. Throws Failure, saying what to do, when gnuplot
// is not there or does not understand.
void draw_with_gnuplot(const std::string& body, const std::string& path, const GnuplotSize& size = {});

}  // namespace cosformer::cli
