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

}  // namespace

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
