// Times the products of a pass, computed in several ways: one thread, its CPU time, all ways by turns in short rounds.
// Ratios are taken within a round; their medians are printed.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include <time.h>

#include "products.h"

namespace cosformer::products {
namespace {

constexpr int kRounds = 1001;
constexpr double kOperationsPerTurn = 1e7;  // 60 µs or so

// Random numbers that move within their first page from round to round: where rows lie to each other, and to the stack,
// changes a product's time by as much as what is compared here.
class MovingNumbers {
 public:
  MovingNumbers(std::int64_t count, std::mt19937& random) : numbers_(count), room_(count + kPage + kLine) {
    std::uniform_real_distribution<float> any(-1, 1);
    for (float& number : numbers_) number = any(random);
  }

  float* move(std::mt19937& random) {
    const auto address = reinterpret_cast<std::uintptr_t>(room_.data()) / sizeof(float);
    const std::size_t place = (kLine - address % kLine) % kLine + random() % (kPage / kLine) * kLine;
    here_ = room_.data() + place;
    restore();
    return here_;
  }
  void restore() { std::copy(numbers_.begin(), numbers_.end(), here_); }
  const std::vector<float>& numbers() const { return numbers_; }

 private:
  static constexpr std::size_t kLine = 64 / sizeof(float), kPage = 4096 / sizeof(float);

  std::vector<float> numbers_, room_;
  float* here_ = nullptr;
};

double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double quantile(std::vector<double> x, double at) {
  const auto place = x.begin() + static_cast<std::ptrdiff_t>(at * static_cast<double>(x.size() - 1));
  std::nth_element(x.begin(), place, x.end());
  return *place;
}

// The greatest error of c in units of what rounding once would be for the sum of absolute values. Above k + 2 it is no
// rounding error.
double greatest_error(const Case& p, const Operands& x, const std::vector<float>& c_before) {
  double greatest = 0;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = static_cast<double>(p.scale) * c_before[i * p.n + j], size = std::abs(sum);
      for (std::int64_t k = 0; k < p.k; ++k) {
        const double term =
            static_cast<double>(p.a_transposed ? x.a[k * p.m + i] : x.a[i * p.k + k]) * x.b[k * p.n + j];
        sum += term;
        size += std::abs(term);
      }
      greatest = std::max(greatest, std::abs(sum - x.c[i * p.n + j]) / (std::ldexp(1.0, -24) * size));
    }
  }
  return greatest;
}

void compare(const Case& p) {
  std::mt19937 random(7);
  MovingNumbers a(p.m * p.k, random), b(p.k * p.n, random), c(p.m * p.n, random);
  Operands x{a.move(random), b.move(random), c.move(random)};
  std::vector<Contender> contenders;
  add_ours(p, contenders);
  add_highway(p, contenders);
  add_libxsmm(p, contenders);

  std::vector<double> errors;
  for (const Contender& contender : contenders) {
    c.restore();
    contender.multiply(x);
    errors.push_back(greatest_error(p, x, c.numbers()));
    if (!(errors.back() <= static_cast<double>(p.k + 2))) {
      std::fprintf(stderr, "%s, %s: off by %g, which rounding does not explain\n", p.name.c_str(),
                   contender.name.c_str(), errors.back());
      std::exit(1);
    }
  }

  const double operations = 2.0 * static_cast<double>(p.m * p.n * p.k);
  const int calls = std::max(1, static_cast<int>(kOperationsPerTurn / operations));
  std::vector<std::vector<double>> seconds(contenders.size()), of_peak(contenders.size()), of_ours(contenders.size());
  for (int round = 0; round < kRounds; ++round) {
    x = {a.move(random), b.move(random), c.move(random)};
    double begin = thread_seconds();
    const double peak = run_fma_loop() / (thread_seconds() - begin);
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      const std::size_t which = (turn + static_cast<std::size_t>(round)) % contenders.size();
      c.restore();
      contenders[which].multiply(x);
      begin = thread_seconds();
      for (int call = 0; call < calls; ++call) contenders[which].multiply(x);
      seconds[which].push_back((thread_seconds() - begin) / calls);
      of_peak[which].push_back(operations / seconds[which].back() / peak);
    }
    for (std::size_t i = 0; i < contenders.size(); ++i) of_ours[i].push_back(seconds[0].back() / seconds[i].back());
  }

  std::printf("\n%s: c [%d, %d] = %g·c + a [%d, %d]%s · b\n", p.name.c_str(), int(p.m), int(p.n), p.scale, int(p.m),
              int(p.k), p.a_transposed ? ", which lies transposed," : "");
  std::printf("  %-28s %9s %9s  %-22s %6s\n", "", "ns", "of peak", "speed, ours = 1", "error");
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    std::printf("  %-28s %9.0f %8.1f%%  %5.3f (%5.3f to %5.3f) %6.1f\n", contenders[i].name.c_str(),
                1e9 * quantile(seconds[i], 0.5), 100 * quantile(of_peak[i], 0.5), quantile(of_ours[i], 0.5),
                quantile(of_ours[i], 0.25), quantile(of_ours[i], 0.75), errors[i]);
  }
}

}  // namespace
}  // namespace cosformer::products

int main() {
  using cosformer::products::Case;
  std::printf("vectors of %d bytes; Highway %s; libxsmm %s\n", COSFORMER_VECTOR_BYTES,
              cosformer::products::highway_target(), cosformer::products::libxsmm_target().c_str());
  std::printf("medians of %d rounds; in brackets the quarter and three quarters of the rounds\n",
              cosformer::products::kRounds);
  for (const std::int64_t dim : {64, 128}) {
    const std::string d = ", d = " + std::to_string(dim);
    cosformer::products::compare(Case{"numerators" + d, 32, dim, 2 * dim, false, 0});
    cosformer::products::compare(Case{"numerators added" + d, 32, dim, 2 * dim, false, 1});
    cosformer::products::compare(Case{"state" + d, 2 * dim, dim, 32, true, 1});
    cosformer::products::compare(Case{"state that decays" + d, 2 * dim, dim, 32, true, 0.97F});
    cosformer::products::compare(Case{"scores" + d, 32, 32, dim, false, 0});
  }
  return 0;
}
