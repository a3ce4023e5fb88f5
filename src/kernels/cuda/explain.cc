// The choice in words.
#include <sstream>

#include "kernels/cuda/choice.h"

namespace cosformer::kernels::cuda {

const char* name_of(Family family) {
  switch (family) {
    case Family::kRefused: return "refused";
    case Family::kDecode: return "decode";
    case Family::kGeneral: return "general";
    case Family::kNarrow: return "hopper/narrow";
    case Family::kWide: return "hopper/wide";
    case Family::kBothSides: return "hopper/both_sides";
  }
  return "?";
}

const char* name_of(Fetch fetch) {
  switch (fetch) {
    case Fetch::kPlain: return "plain loads";
    case Fetch::kCpAsync: return "cp.async";
    case Fetch::kMaskedCpAsync: return "masked cp.async";
    case Fetch::kTma: return "TMA";
  }
  return "?";
}

const char* name_of(Launch launch) {
  switch (launch) {
    case Launch::kSingle: return "one launch";
    case Launch::kSumFirst: return "a sum, then the sweep";
    case Launch::kSegmentScan: return "sums of segments, a scan over them, then the sweep";
    case Launch::kCooperativeScan: return "sums and their scan in one cooperative launch, then the sweep";
    case Launch::kCooperative: return "sums, scan and sweep in one cooperative launch";
  }
  return "?";
}

namespace {

void add_cut(std::ostringstream& text, const char* name, const Segments& segments) {
  text << "  " << name << segments.count << (segments.count == 1 ? " segment of up to " : " segments of ")
       << segments.tokens << " tokens\n";
}

}  // namespace

std::string explain(const Problem& /*problem*/, const Gradients* gradients, const Choice& c) {
  std::ostringstream text;
  text << "  kernels    " << name_of(c.family);
  if (c.state_in_registers) text << ", the state in registers";
  text << ": " << c.family_because << '\n';
  if (c.family == Family::kRefused) return text.str();
  if (c.sums != c.family) text << "  sums       " << name_of(c.sums) << '\n';
  if (c.parts.count() > 1) {
    text << "  parts      " << c.parts.features << (c.parts.features == 1 ? " block" : " blocks") << " of features x "
         << c.parts.values << (c.parts.values == 1 ? " block" : " blocks") << " of values, one after the other\n";
  }
  text << "  rows by    " << name_of(c.fetch) << ": " << c.fetch_because << '\n';
  if (c.family == Family::kDecode) return text.str() + "  launches   one, a block for each head\n";
  const bool backward = gradients != nullptr;
  text << (backward ? "  dq         " : "  launches   ") << name_of(c.keys) << ": " << c.keys_because << '\n';
  if (backward) text << "  dk, dv     " << name_of(c.queries) << ": " << c.queries_because << '\n';
  if (c.plan.two_sided && c.family != Family::kBothSides) {
    text << "             twice: what lies before a row and what lies after it\n";
  }
  if (c.plan.running) {
    add_cut(text, "plan       ", c.plan.sweep);
  } else {
    add_cut(text, "plan       keys in ", c.plan.sum_keys);
    add_cut(text, backward ? "           queries in " : "           rows in ",
            backward ? c.plan.sum_queries : c.plan.sweep_over_queries);
  }
  text << "  workspace  " << c.workspace.bytes << " bytes";
  if (c.key_sum_floats > 0) {
    text << ", and " << c.key_sum_floats * static_cast<std::int64_t>(sizeof(float))
         << (backward ? " bytes that the forward pass has left" : " bytes that are left to the backward pass");
  }
  text << '\n';
  return text.str();
}

}  // namespace cosformer::kernels::cuda
