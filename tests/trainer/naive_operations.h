// Every operation of a step (net/step/operation.h) by plain loops in double, on one rank: what a device is compared
// with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "net/step/operation.h"

namespace atl::test {

// The kept buffers' elements, by buffer.
using Elements = std::vector<std::vector<double>>;

class NaiveOperations {
 public:
  explicit NaiveOperations(Elements& elements) : elements_(elements) {}

  void operator()(const Fill& o) const {
    each(o.x, [&](std::int64_t r, std::int64_t c) { at(o.x, r, c) = static_cast<double>(o.value); });
  }
  void operator()(const Convert& o) const {
    each(o.to, [&](std::int64_t r, std::int64_t c) { at(o.to, r, c) = at(o.from, r, c); });
  }
  void operator()(const Embed& o) const {
    each(o.x, [&](std::int64_t r, std::int64_t c) { at(o.x, r, c) = at(o.table, index(o.tokens, r), c); });
  }
  void operator()(const EmbedBackward& o) const {
    each(o.dx, [&](std::int64_t r, std::int64_t c) { at(o.gradient, index(o.tokens, r), c) += at(o.dx, r, c); });
  }

  void operator()(const RmsNorm& o) const {
    for (std::int64_t r = 0; r < o.x.rows; ++r) {
      double squares = 0;
      for (std::int64_t c = 0; c < o.x.columns; ++c) squares += at(o.x, r, c) * at(o.x, r, c);
      const double inverse = 1 / std::sqrt(squares / static_cast<double>(o.x.columns) + static_cast<double>(o.epsilon));
      at(o.inverse_rms, 0, r) = inverse;
      for (std::int64_t c = 0; c < o.x.columns; ++c) at(o.y, r, c) = at(o.weight, 0, c) * at(o.x, r, c) * inverse;
    }
  }
  // y_c = w_c x_c i, i = (mean x^2 + e)^(-1/2): dx_c = i (w_c dy_c - x_c i^2 mean(w dy x)).
  void operator()(const RmsNormBackward& o) const {
    const auto residual = o.residual ? elements_[place(*o.residual)] : std::vector<double>{};
    if (!o.accumulate) (*this)(Fill{o.dweight});
    for (std::int64_t r = 0; r < o.x.rows; ++r) {
      const double inverse = at(o.inverse_rms, 0, r);
      double mean = 0;
      for (std::int64_t c = 0; c < o.x.columns; ++c) mean += at(o.weight, 0, c) * at(o.dy, r, c) * at(o.x, r, c);
      mean /= static_cast<double>(o.x.columns);
      for (std::int64_t c = 0; c < o.x.columns; ++c) {
        at(o.dweight, 0, c) += at(o.dy, r, c) * at(o.x, r, c) * inverse;
        const double dx = inverse * (at(o.weight, 0, c) * at(o.dy, r, c) - at(o.x, r, c) * inverse * inverse * mean);
        at(o.dx, r, c) = dx + (o.residual ? residual[static_cast<std::size_t>(r * o.residual->stride + c)] : 0);
      }
    }
  }

  void operator()(const MatMul& o) const {
    const std::int64_t inner = o.transpose_a ? o.a.rows : o.a.columns;
    each(o.out, [&](std::int64_t r, std::int64_t c) {
      double sum = o.add ? at(*o.add, r, c) : o.accumulate ? at(o.out, r, c) : 0;
      for (std::int64_t k = 0; k < inner; ++k) {
        sum += (o.transpose_a ? at(o.a, k, r) : at(o.a, r, k)) * (o.transpose_b ? at(o.b, c, k) : at(o.b, k, c));
      }
      at(o.out, r, c) = sum;
    });
  }

  void operator()(const Rope& o) const {
    const std::int64_t half = o.head_dim / 2;
    for (std::int64_t r = 0; r < o.x.rows; ++r) {
      for (std::int64_t i = 0; i < o.heads * half; ++i) {
        const std::int64_t head = i / half, pair = i % half;
        double& first = at(o.x, r, head * o.head_dim + pair);
        double& second = at(o.x, r, head * o.head_dim + pair + half);
        const std::int64_t position = r % o.length - (o.starts ? index(*o.starts, r) : 0);
        const double cosine = at(o.cosines, position, pair);
        const double sine = static_cast<double>(o.direction) * at(o.sines, position, pair);
        const double turned = first * cosine - second * sine;
        second = second * cosine + first * sine;
        first = turned;
      }
    }
  }

  void operator()(const Attention& o) const {
    each_query(o, [&](const Query& q) {
      const std::vector<double> scores = scores_of(o.qkv, o.shape, q);
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (const double score : scores) sum += std::exp(score - most);
      at(o.logsumexp, q.sequence * o.shape.heads + q.head, q.position) = most + std::log(sum);
      for (std::int64_t d = 0; d < o.shape.head_dim; ++d) {
        double value = 0;
        for (std::size_t k = 0; k < scores.size(); ++k) {
          value += std::exp(scores[k] - most) / sum * at(o.qkv, q.key_row(k), q.value_column + d);
        }
        at(o.out, q.row, q.query_column + d) = value;
      }
    });
  }
  void operator()(const AttentionBackward& o) const {
    (*this)(Fill{o.dqkv});
    const double scale = 1 / std::sqrt(static_cast<double>(o.shape.head_dim));
    each_query(o, [&](const Query& q) {
      const std::vector<double> scores = scores_of(o.qkv, o.shape, q);
      const double logsumexp = at(o.logsumexp, q.sequence * o.shape.heads + q.head, q.position);
      double mean = 0;  // of the gradients of the probabilities
      for (std::int64_t d = 0; d < o.shape.head_dim; ++d) {
        mean += at(o.dout, q.row, q.query_column + d) * at(o.out, q.row, q.query_column + d);
      }
      for (std::size_t k = 0; k < scores.size(); ++k) {
        const double probability = std::exp(scores[k] - logsumexp);
        double gradient = 0;
        for (std::int64_t d = 0; d < o.shape.head_dim; ++d) {
          const double dout = at(o.dout, q.row, q.query_column + d);
          gradient += dout * at(o.qkv, q.key_row(k), q.value_column + d);
          at(o.dqkv, q.key_row(k), q.value_column + d) += probability * dout;
        }
        const double dscore = probability * (gradient - mean) * scale;
        for (std::int64_t d = 0; d < o.shape.head_dim; ++d) {
          at(o.dqkv, q.row, q.query_column + d) += dscore * at(o.qkv, q.key_row(k), q.key_column + d);
          at(o.dqkv, q.key_row(k), q.key_column + d) += dscore * at(o.qkv, q.row, q.query_column + d);
        }
      }
    });
  }

  void operator()(const Swiglu& o) const {
    each(o.out, [&](std::int64_t r, std::int64_t c) {
      const double gate = at(o.gate_up, r, c);
      at(o.out, r, c) = gate / (1 + std::exp(-gate)) * at(o.gate_up, r, o.out.columns + c);
    });
  }
  void operator()(const SwigluBackward& o) const {
    each(o.dout, [&](std::int64_t r, std::int64_t c) {
      const double gate = at(o.gate_up, r, c), up = at(o.gate_up, r, o.dout.columns + c);
      const double sigmoid = 1 / (1 + std::exp(-gate));
      at(o.dgate_up, r, c) = at(o.dout, r, c) * up * sigmoid * (1 + gate * (1 - sigmoid));
      at(o.dgate_up, r, o.dout.columns + c) = at(o.dout, r, c) * gate * sigmoid;
    });
  }

  void operator()(const CrossEntropy& o) const {
    const double scale = at(o.scale, 0, 0), penalty = static_cast<double>(o.max_z_loss);
    for (std::int64_t r = 0; r < o.logits.rows; ++r) {
      std::int64_t largest = 0;
      for (std::int64_t c = 1; c < o.logits.columns; ++c) {
        if (at(o.logits, r, c) > at(o.logits, r, largest)) largest = c;
      }
      const double most = at(o.logits, r, largest);
      double sum = 0;
      for (std::int64_t c = 0; c < o.logits.columns; ++c) sum += std::exp(at(o.logits, r, c) - most);
      const std::int64_t label = index(o.labels, r);
      if (label < 0) {
        for (std::int64_t c = 0; o.gradient && c < o.logits.columns; ++c) at(o.logits, r, c) = 0;
        continue;
      }
      at(o.sums, 0, 0) += most + std::log(sum) - at(o.logits, r, label);
      at(o.sums, 0, 1) += most * most;
      for (std::int64_t c = 0; o.gradient && c < o.logits.columns; ++c) {
        double& logit = at(o.logits, r, c);
        const double probability = std::exp(logit - most) / sum;
        logit = scale * (probability - (c == label ? 1 : 0) + (c == largest ? 2 * penalty * most : 0));
      }
    }
  }

  void operator()(const SquaredNorm& o) const {
    double sum = 0;
    each(o.x, [&](std::int64_t r, std::int64_t c) { sum += at(o.x, r, c) * at(o.x, r, c); });
    at(o.sum, 0, 0) = sum;
  }
  void operator()(const ClipScale& o) const {
    const double norm = std::sqrt(at(o.sums, 0, static_cast<int>(StepSum::kGradientSquares)));
    const bool finite = std::isfinite(at(o.sums, 0, 0)) && std::isfinite(at(o.sums, 0, 1)) && std::isfinite(norm);
    const auto clip = static_cast<double>(o.clip_norm);
    double& stopped = at(o.scalars, 0, static_cast<int>(StepScalar::kStopped));
    at(o.scalars, 0, static_cast<int>(StepScalar::kApply)) = finite && stopped == 0 ? 1 : 0;
    if (!finite) stopped = 1;
    at(o.scalars, 0, static_cast<int>(StepScalar::kGradientScale)) =
        finite ? (clip > 0 ? std::min(1.0, clip / (norm + 1e-6)) : 1) : 0;
  }
  void operator()(const AdamW& o) const {
    const auto scalar = [&](StepScalar which) { return at(o.scalars, 0, static_cast<int>(which)); };
    if (scalar(StepScalar::kApply) == 0) return;
    const auto b1 = static_cast<double>(o.beta1), b2 = static_cast<double>(o.beta2);
    each(o.parameters, [&](std::int64_t r, std::int64_t c) {
      const double g = scalar(StepScalar::kGradientScale) * at(o.gradients, r, c);
      double& m = at(o.first_moment, r, c);
      double& v = at(o.second_moment, r, c);
      double& p = at(o.parameters, r, c);
      m += (1 - b1) * (g - m);
      v = b2 * v + (1 - b2) * g * g;
      p = p * scalar(StepScalar::kDecay) -
          scalar(StepScalar::kStepSize) * m /
              (std::sqrt(v) * scalar(StepScalar::kInverseCorrection2) + static_cast<double>(o.epsilon));
      if (o.rounded) at(*o.rounded, r, c) = p;
    });
  }

  // Of one rank.
  void operator()(const AllGather& o) const { (*this)(Convert{o.shard, o.full}); }
  void operator()(const ReduceScatter& o) const {
    each(o.shard, [&](std::int64_t r, std::int64_t c) {
      at(o.shard, r, c) = at(o.full, r, c) + (o.accumulate ? at(o.shard, r, c) : 0);
    });
  }
  void operator()(const AllReduce&) const {}
  // Of no training step; inference_engine_test compares them with what such a step computes.
  void operator()(const CachedAttention&) const { throw std::logic_error("CachedAttention is not computed here"); }
  void operator()(const LogProbability&) const { throw std::logic_error("LogProbability is not computed here"); }

 private:
  struct Query {
    std::int64_t sequence, head, position, row, first_row;  // the first row that it sees
    std::int64_t query_column, key_column, value_column;
    std::int64_t key_row(std::size_t key) const { return first_row + static_cast<std::int64_t>(key); }
  };

  template <class AnyAttention, class Visit>
  void each_query(const AnyAttention& o, Visit&& visit) const {
    const AttentionShape& s = o.shape;
    for (std::int64_t sequence = 0; sequence < s.sequences; ++sequence) {
      for (std::int64_t head = 0; head < s.heads; ++head) {
        const std::int64_t shared = head / (s.heads / s.key_value_heads);
        for (std::int64_t position = 0; position < s.length; ++position) {
          const std::int64_t row = sequence * s.length + position;
          const std::int64_t first = sequence * s.length + (o.starts ? index(*o.starts, row) : 0);
          visit(Query{sequence, head, position, row, first, head * s.head_dim, (s.heads + shared) * s.head_dim,
                      (s.heads + s.key_value_heads + shared) * s.head_dim});
        }
      }
    }
  }
  // Of the keys up to the query's own.
  std::vector<double> scores_of(const Tensor& qkv, const AttentionShape& s, const Query& q) const {
    std::vector<double> scores(static_cast<std::size_t>(q.row - q.first_row + 1));
    for (std::size_t k = 0; k < scores.size(); ++k) {
      for (std::int64_t d = 0; d < s.head_dim; ++d) {
        scores[k] += at(qkv, q.row, q.query_column + d) * at(qkv, q.key_row(k), q.key_column + d);
      }
      scores[k] /= std::sqrt(static_cast<double>(s.head_dim));
    }
    return scores;
  }

  static std::size_t place(const Tensor& t) { return static_cast<std::size_t>(t.buffer); }
  double& at(const Tensor& t, std::int64_t row, std::int64_t column) const {
    return elements_[place(t)][static_cast<std::size_t>(t.first + row * t.stride + column)];
  }
  std::int64_t index(const Tensor& t, std::int64_t i) const { return static_cast<std::int64_t>(at(t, 0, i)); }
  template <class Visit>
  static void each(const Tensor& t, Visit&& visit) {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      for (std::int64_t c = 0; c < t.columns; ++c) visit(r, c);
    }
  }

  Elements& elements_;
};

}  // namespace atl::test
