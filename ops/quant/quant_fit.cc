#include "ops/quant/quant_fit.h"

#include <algorithm>

#include "ops/quant/quant_blocks.h"

namespace inlay {
namespace {

// Sums of a least-squares fit of x by scale * q under weights w: the best scale is xq / qq, and it
// leaves an error of sum(w x^2) - xq^2 / qq.
struct Fit {
  float xq = 0;
  float qq = 0;

  void Add(float w, float x, float q) {
    xq += w * x * q;
    qq += w * q * q;
  }
  void Remove(float w, float x, float q) {
    xq -= w * x * q;
    qq -= w * q * q;
  }
};

// A fit of x by scale * q + min, with min <= 0.
struct Line {
  float scale;
  float min;
};

// The least-squares fit under `weights`, of which sum_w is the sum and sum_x that of their products
// with x. False if the levels q do not determine it.
bool FitLine(const float* x, const float* weights, const uint8_t* levels, size_t n, float sum_w,
             float sum_x, Line* line) {
  float sum_q = 0, sum_qq = 0, sum_xq = 0;
  for (size_t i = 0; i < n; ++i) {
    const float w = weights[i], q = levels[i];
    sum_q += w * q;
    sum_qq += w * q * q;
    sum_xq += w * q * x[i];
  }
  const float determinant = sum_w * sum_qq - sum_q * sum_q;
  if (!(determinant > 0)) return false;
  line->scale = (sum_w * sum_xq - sum_x * sum_q) / determinant;
  line->min = (sum_qq * sum_x - sum_q * sum_xq) / determinant;
  if (line->min > 0) *line = {sum_xq / sum_qq, 0};
  return true;
}

}  // namespace

float FitSixBits(const float (&x)[16], uint8_t* levels) {
  const float extreme = Extreme(x, 16);
  if (!(std::abs(extreme) >= kNegligible)) {
    std::fill_n(levels, 16, uint8_t{0});
    return 0;
  }
  float scale = 0, best = 0;
  // The unchanged scale comes first, because it wins among equals.
  for (int trial : {0, -9, -8, -7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
    const float inverse = trial == 0 ? -32 / extreme : -(32 + 0.1f * trial) / extreme;
    uint8_t trial_levels[16];
    Fit fit;
    for (size_t i = 0; i < 16; ++i) {
      const int q = RoundWithin(inverse * x[i], -32, 31);
      trial_levels[i] = static_cast<uint8_t>(q + 32);
      fit.Add(x[i] * x[i], x[i], static_cast<float>(q));
    }
    const bool better = trial == 0 || (fit.qq > 0 && fit.xq * fit.xq > best * fit.qq);
    if (!better) continue;
    std::copy_n(trial_levels, 16, levels);
    scale = fit.qq != 0 ? fit.xq / fit.qq : 0;
    best = scale * fit.xq;
  }
  return scale;
}

float FitThreeBits(const float (&x)[16], uint8_t* levels) {
  const float extreme = Extreme(x, 16);
  if (!(std::abs(extreme) >= kNegligible)) {
    std::fill_n(levels, 16, uint8_t{0});
    return 0;
  }
  const float inverse = -4 / extreme;
  int q[16];
  Fit fit;
  for (size_t i = 0; i < 16; ++i) {
    q[i] = RoundWithin(inverse * x[i], -4, 3);
    fit.Add(x[i] * x[i], x[i], static_cast<float>(q[i]));
  }
  bool changed = true;
  for (int round = 0; round < 5 && changed; ++round) {
    changed = false;
    for (size_t i = 0; i < 16; ++i) {
      const float w = x[i] * x[i];
      Fit others = fit;
      others.Remove(w, x[i], static_cast<float>(q[i]));
      if (!(others.xq > 0)) continue;
      const int candidate = RoundWithin(x[i] * others.qq / others.xq, -4, 3);
      if (candidate == q[i]) continue;
      others.Add(w, x[i], static_cast<float>(candidate));
      if (others.qq > 0 && others.xq * others.xq * fit.qq > fit.xq * fit.xq * others.qq) {
        q[i] = candidate;
        fit = others;
        changed = true;
      }
    }
  }
  for (size_t i = 0; i < 16; ++i) levels[i] = static_cast<uint8_t>(q[i] + 4);
  return fit.qq > 0 ? fit.xq / fit.qq : 0;
}

float FitAffine(const AffineSearch& search, const float* x, const float* weights, size_t n,
                uint8_t* levels, float* min_out) {
  float min = x[0], max = x[0];
  float sum_w = weights[0], sum_x = sum_w * x[0];
  for (size_t i = 1; i < n; ++i) {
    if (x[i] < min) min = x[i];
    if (x[i] > max) max = x[i];
    sum_w += weights[i];
    sum_x += weights[i] * x[i];
  }
  if (min > 0) min = 0;
  if (max == min) {
    std::fill_n(levels, n, uint8_t{0});
    *min_out = -min;
    return 0;
  }
  uint8_t trial_levels[32];
  // Levels start from the best `min` so far.
  const auto quantize = [&](float numerator) {
    const float inverse = numerator / (max - min);
    for (size_t i = 0; i < n; ++i) {
      trial_levels[i] =
          static_cast<uint8_t>(RoundWithin(inverse * (x[i] - min), 0, search.max_level));
    }
    return inverse;
  };
  const auto error = [&](float scale, float offset) {
    float sum = 0;
    for (size_t i = 0; i < n; ++i) {
      const float difference = scale * trial_levels[i] + offset - x[i];
      sum += weights[i] * (search.absolute_error ? std::abs(difference) : difference * difference);
    }
    return sum;
  };
  float scale = 1 / quantize(static_cast<float>(search.max_level));
  std::copy_n(trial_levels, n, levels);
  float best = error(scale, min);
  for (int step = 0; step <= search.last_step; ++step) {
    quantize(search.first + 0.1f * step + search.max_level);
    Line trial;
    if (!FitLine(x, weights, trial_levels, n, sum_w, sum_x, &trial)) continue;
    const float trial_error = error(trial.scale, trial.min);
    if (trial_error < best) {
      std::copy_n(trial_levels, n, levels);
      best = trial_error;
      scale = trial.scale;
      min = trial.min;
    }
  }
  *min_out = -min;
  return scale;
}

int NearestIq4Nl(float v) {
  int index = 0;
  while (index < 15 && v >= static_cast<float>(kIq4NlValues[index])) ++index;
  // Now index is 0, or value[index - 1] <= v, and v < value[index] unless index is 15.
  if (index == 0 || v >= static_cast<float>(kIq4NlValues[index])) return index;
  const float above = static_cast<float>(kIq4NlValues[index]);
  const float below = static_cast<float>(kIq4NlValues[index - 1]);
  return v - below < above - v ? index - 1 : index;
}

float FitIq4Nl(const float (&x)[32]) {
  const float extreme = Extreme(x, 32);
  if (!(std::abs(extreme) >= kNegligible)) return 0;
  const float first = static_cast<float>(kIq4NlValues[0]);
  const auto fit_with = [&](float inverse) {
    Fit fit;
    for (float v : x) {
      const float q = static_cast<float>(kIq4NlValues[NearestIq4Nl(inverse * v)]);
      // Weight times q first, in the order of the reference quantizer.
      const float w = v * v;
      fit.xq += w * q * v;
      fit.qq += w * q * q;
    }
    return fit;
  };
  const Fit start = fit_with(1 / (-extreme / first));
  float scale = start.qq > 0 ? start.xq / start.qq : 0;
  float best = scale * start.xq;
  for (int trial = -7; trial <= 7; ++trial) {
    const Fit fit = fit_with((static_cast<float>(trial) + first) / extreme);
    if (fit.qq > 0 && fit.xq * fit.xq > best * fit.qq) {
      scale = fit.xq / fit.qq;
      best = scale * fit.xq;
    }
  }
  return scale;
}

}  // namespace inlay
