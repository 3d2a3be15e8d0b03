// A model as plain loops in double over the dequantized weights of its file. It shares nothing with
// the engine but the config's type.
#ifndef INLAY_TESTS_GEMMA_LIKE_REFERENCE_H_
#define INLAY_TESTS_GEMMA_LIKE_REFERENCE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "configs/config.h"
#include "configs/pattern.h"
#include "io/gguf/gguf.h"
#include "ops/quant/dequantize.h"

namespace inlay {

using Doubles = std::vector<double>;
using DoubleRows = std::vector<Doubles>;

// A tensor of a file, [rows][cols]; a vector is one row.
inline DoubleRows ReadTensor(const GgufFile& file, const std::string& name) {
  const GgufTensor* tensor = file.FindTensor(name);
  if (tensor == nullptr) {
    ADD_FAILURE() << name << " is missing";
    return {};
  }
  const size_t cols = tensor->dims[0], rows = tensor->dims.size() > 1 ? tensor->dims[1] : 1;
  const WeightMatrix matrix{tensor->data.data(), tensor->type, rows, cols};
  DoubleRows out;
  std::vector<float> row(cols);
  for (size_t r = 0; r < rows; ++r) {
    DequantizeRow(matrix, r, row.data());
    out.emplace_back(row.begin(), row.end());
  }
  return out;
}

inline Doubles Times(const DoubleRows& w, const Doubles& x) {
  Doubles y;
  for (const Doubles& row : w) {
    double sum = 0;
    for (size_t c = 0; c < x.size(); ++c) sum += row[c] * x[c];
    y.push_back(sum);
  }
  return y;
}

// x / sqrt(mean(x^2) + epsilon) * weight, for x[begin, begin + weight.size()).
inline void NormalizePart(const Doubles& weight, double epsilon, size_t begin, Doubles& x) {
  double sum = 0;
  for (size_t i = 0; i < weight.size(); ++i) sum += x[begin + i] * x[begin + i];
  const double scale = 1 / std::sqrt(sum / static_cast<double>(weight.size()) + epsilon);
  for (size_t i = 0; i < weight.size(); ++i) x[begin + i] *= scale * weight[i];
}

inline double Silu(double x) { return x / (1 + std::exp(-x)); }

template <ModelConfig Config>
class Reference {
 public:
  explicit Reference(const GgufFile& file) : file_(file) {}

  // After the last norm, of each token.
  DoubleRows Hidden(absl::Span<const int32_t> tokens) const {
    const DoubleRows embedding = Read("token_embd.weight");
    DoubleRows x;
    for (const int32_t token : tokens) {
      x.push_back(embedding[static_cast<size_t>(token)]);
      for (double& value : x.back()) value *= double{Config::kEmbeddingScale};
    }
    ForEachLayer<Config>([&]<class L>(int index) { RunLayer<L>(index, x); });
    const Doubles norm = Read("output_norm.weight").front();
    for (Doubles& row : x) NormalizePart(norm, Config::kNormEpsilon, 0, row);
    return x;
  }

  // After each token; without a soft cap.
  DoubleRows Logits(absl::Span<const int32_t> tokens) const {
    const DoubleRows output = Read(Config::kTiedOutput ? "token_embd.weight" : "output.weight");
    DoubleRows logits;
    for (const Doubles& row : Hidden(tokens)) {
      logits.push_back(Times(output, row));
      for (double& value : logits.back()) value /= double{Config::kLogitDivisor};
    }
    return logits;
  }

  // The mean of the hidden states, through the two matrices if there are any, of length 1.
  Doubles Embedding(absl::Span<const int32_t> tokens) const {
    Doubles pooled(size_t{Config::kModelDim});
    for (const Doubles& row : Hidden(tokens)) {
      for (size_t c = 0; c < pooled.size(); ++c) {
        pooled[c] += row[c] / static_cast<double>(tokens.size());
      }
    }
    if (file_.FindTensor("dense_2.weight") != nullptr) {
      pooled = Times(Read("dense_3.weight"), Times(Read("dense_2.weight"), pooled));
    }
    double squares = 0;
    for (const double value : pooled) squares += value * value;
    for (double& value : pooled) value /= std::sqrt(squares);
    return pooled;
  }

 private:
  DoubleRows Read(const std::string& name) const { return ReadTensor(file_, name); }

  template <class L>
  void RunLayer(int index, DoubleRows& x) const {
    const std::string prefix = absl::StrCat("blk.", index, ".");
    const auto add = [&](double multiplier, const char* post_norm, DoubleRows branch) {
      for (size_t t = 0; t < x.size(); ++t) {
        if (L::Norms::kPost) {
          NormalizePart(Read(prefix + post_norm).front(), Config::kNormEpsilon, 0, branch[t]);
        }
        for (size_t c = 0; c < x[t].size(); ++c) x[t][c] += multiplier * branch[t][c];
      }
    };
    const auto normed = [&](const char* norm) {
      const Doubles weight = Read(prefix + norm).front();
      DoubleRows y = x;
      for (Doubles& row : y) NormalizePart(weight, Config::kNormEpsilon, 0, row);
      return y;
    };
    const DoubleRows before = normed("attn_norm.weight");
    ForEachMixer<L>([&]<class M>(size_t i) {
      add(double{L::kMixerMultipliers[i]}, "post_attention_norm.weight", Mix(M(), prefix, before));
    });
    if constexpr (L::kHasMlp) {
      DoubleRows y = normed("ffn_norm.weight");
      const DoubleRows gate = Read(prefix + "ffn_gate.weight");
      const DoubleRows up = Read(prefix + "ffn_up.weight");
      const DoubleRows down = Read(prefix + "ffn_down.weight");
      for (Doubles& row : y) {
        Doubles hidden = Times(gate, row);
        const Doubles factor = Times(up, row);
        for (size_t i = 0; i < hidden.size(); ++i) {
          const double g = hidden[i];
          const double tanh = std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g));
          hidden[i] = factor[i] *
                      (L::Mlp::kActivation == Activation::kSilu ? Silu(g) : 0.5 * g * (1 + tanh));
        }
        row = Times(down, hidden);
      }
      add(double{L::kMlpMultiplier}, "post_ffw_norm.weight", std::move(y));
    }
  }

  // One head's row of queries or keys.
  template <AttentionShape kShape, Rope kRope>
  static void PrepareHead(const DoubleRows& norm, size_t position, size_t begin, Doubles& x) {
    if (kShape.qk_norm) NormalizePart(norm.front(), Config::kNormEpsilon, begin, x);
    constexpr size_t kHalf = size_t{kShape.head_dim} / 2;
    for (size_t i = 0; i < kHalf && kRope.base != 0; ++i) {
      const double angle = static_cast<double>(position) / kRope.scale *
                           std::pow(kRope.base, -static_cast<double>(i) / kHalf);
      double& re = x[begin + (kRope.interleaved ? 2 * i : i)];
      double& im = x[begin + (kRope.interleaved ? 2 * i + 1 : i + kHalf)];
      const double rotated = re * std::cos(angle) - im * std::sin(angle);
      im = re * std::sin(angle) + im * std::cos(angle);
      re = rotated;
    }
  }

  template <AttentionShape kShape, int kWindow>
  static bool Sees(ptrdiff_t from, ptrdiff_t to) {
    if (kShape.bidirectional) return kWindow == 0 || std::abs(from - to) <= kWindow / 2;
    return to <= from && (kWindow == 0 || from - to < kWindow);
  }

  template <AttentionShape kShape, Rope kRope, int kWindow>
  DoubleRows Mix(AttentionMixer<kShape, kRope, kWindow>, const std::string& prefix,
                 const DoubleRows& x) const {
    constexpr size_t kDim = kShape.head_dim, kHeads = kShape.heads, kKvHeads = kShape.kv_heads;
    const auto project = [&](const char* which, size_t heads) {
      const DoubleRows w = Read(absl::StrCat(prefix, "attn_", which, ".weight"));
      const DoubleRows norm = kShape.qk_norm && *which != 'v'
                                  ? Read(absl::StrCat(prefix, "attn_", which, "_norm.weight"))
                                  : DoubleRows();
      DoubleRows y;
      for (size_t t = 0; t < x.size(); ++t) {
        y.push_back(Times(w, x[t]));
        for (size_t h = 0; h < heads && *which != 'v'; ++h) {
          PrepareHead<kShape, kRope>(norm, t, h * kDim, y[t]);
        }
      }
      return y;
    };
    const DoubleRows q = project("q", kHeads), k = project("k", kKvHeads),
                     v = project("v", kKvHeads), output = Read(prefix + "attn_output.weight");
    DoubleRows y;
    for (size_t t = 0; t < x.size(); ++t) {
      Doubles attended(kHeads * kDim);
      for (size_t h = 0; h < kHeads; ++h) {
        const size_t kv = h / (kHeads / kKvHeads) * kDim;
        Doubles weights(x.size());
        double sum = 0;
        for (size_t s = 0; s < x.size(); ++s) {
          if (!Sees<kShape, kWindow>(static_cast<ptrdiff_t>(t), static_cast<ptrdiff_t>(s)))
            continue;
          double dot = 0;
          for (size_t i = 0; i < kDim; ++i) dot += q[t][h * kDim + i] * k[s][kv + i];
          sum += weights[s] = std::exp(dot * kShape.Scale());
        }
        for (size_t s = 0; s < x.size(); ++s) {
          for (size_t i = 0; i < kDim; ++i) {
            attended[h * kDim + i] += weights[s] / sum * v[s][kv + i];
          }
        }
      }
      y.push_back(Times(output, attended));
    }
    return y;
  }

  template <Mamba2Shape kShape>
  DoubleRows Mix(Mamba2<kShape>, const std::string& prefix, const DoubleRows& x) const {
    constexpr size_t kHeads = kShape.heads, kDim = kShape.head_dim, kState = kShape.state_dim;
    constexpr size_t kGroups = kShape.groups, kInner = kHeads * kDim, kBc = kGroups * kState;
    const auto read = [&](const char* name) { return Read(prefix + name); };
    const DoubleRows in = read("ssm_in.weight"), out = read("ssm_out.weight");
    const DoubleRows conv = read("ssm_conv1d.weight"), norm = read("ssm_norm.weight");
    const Doubles conv_bias = read("ssm_conv1d.bias").front();
    const Doubles dt_bias = read("ssm_dt.bias").front();
    const DoubleRows a = read("ssm_a"), d = read("ssm_d");
    DoubleRows projected, y;
    DoubleRows states(kInner, Doubles(kState));
    for (size_t t = 0; t < x.size(); ++t) {
      projected.push_back(Times(in, x[t]));  // z; x, B, C; dt
      Doubles xbc = conv_bias;
      for (size_t c = 0; c < xbc.size(); ++c) {
        for (size_t tap = 0; tap < size_t{kShape.conv_width}; ++tap) {
          if (t + tap + 1 < size_t{kShape.conv_width}) continue;  // before the text
          xbc[c] += conv[c][tap] * projected[t + tap + 1 - kShape.conv_width][kInner + c];
        }
        xbc[c] = Silu(xbc[c]);
      }
      Doubles mixed(kInner);
      for (size_t i = 0; i < kInner; ++i) {
        const size_t h = i / kDim, bc = kInner + h / (kHeads / kGroups) * kState;
        const double raw = projected[t][2 * kInner + 2 * kBc + h] + dt_bias[h];
        const double dt = std::log1p(std::exp(raw));
        Doubles& state = states[i];
        for (size_t n = 0; n < kState; ++n) {
          state[n] = std::exp(dt * a[h].front()) * state[n] + dt * xbc[i] * xbc[bc + n];
          mixed[i] += state[n] * xbc[bc + kBc + n];
        }
        mixed[i] = (mixed[i] + d[h].front() * xbc[i]) * Silu(projected[t][i]);
      }
      // Each group is normalised by itself.
      const size_t group = kInner / kGroups;
      for (size_t g = 0; g < kGroups; ++g) {
        NormalizePart(norm[g], Config::kNormEpsilon, g * group, mixed);
      }
      y.push_back(Times(out, mixed));
    }
    return y;
  }

  const GgufFile& file_;
};

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_REFERENCE_H_
