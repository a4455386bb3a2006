// Attention tile by tile, in GCC's vectors of kLanes floats. Included by attention_plain.cpp, attention_avx2.cpp and
// attention_avx512.cpp alone, each for its own instructions, which define kLanes before: all that is instantiated here
// has internal linkage, and nothing here calls an inline function of the standard library, so that no other file can be
// linked with instructions that it must not have.
#pragma once

#include <cstdint>

#include "kernels/model/attention.h"
#include "kernels/model/attention_sets.h"

namespace atl {

namespace {

typedef float Floats __attribute__((vector_size(kLanes * 4)));
typedef std::int32_t Ints __attribute__((vector_size(kLanes * 4)));
typedef std::uint32_t Words __attribute__((vector_size(kLanes * 4)));
typedef std::uint16_t Halves __attribute__((vector_size(kLanes * 2)));

inline Floats all(float x) { return Floats{} + x; }
inline Floats load(const float* p) {
  Floats v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
inline Floats load(const Bf16* p) {
  Halves v;
  __builtin_memcpy(&v, p, sizeof(v));
  return reinterpret_cast<Floats>(__builtin_convertvector(v, Words) << 16);
}
inline void store(float* p, Floats v) { __builtin_memcpy(p, &v, sizeof(v)); }
inline void store(Bf16* p, Floats v) {
  const Words bits = reinterpret_cast<Words>(v);
  const Words rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const Words kept = (bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : rounded;  // NaN stays NaN
  const Halves halves = __builtin_convertvector(kept >> 16, Halves);
  __builtin_memcpy(&p->bits, &halves, sizeof(halves));
}
inline float value_of(float x) { return x; }
inline float value_of(Bf16 x) { return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16); }
inline void round_to(float x, float& to) { to = x; }
inline void round_to(float x, Bf16& to) {
  Bf16 rounded[kLanes];
  store(rounded, all(x));
  to = rounded[0];
}
inline Ints lane_numbers() {
  Ints v;
  for (int i = 0; i < kLanes; ++i) v[i] = i;
  return v;
}
// All bits in the lanes below `count`.
inline Ints first_lanes(std::int64_t count) {
  return lane_numbers() < static_cast<std::int32_t>(count < kLanes ? count : kLanes);
}
inline float sum_of(Floats v) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
}

constexpr float kLog2E = 1.44269504f;

// 2^x to about 2 ulp for x < 128, from -126 down 2^-126: the nearest whole number apart, a polynomial of degree 6
// (Cephes exp2f). NaN stays NaN.
inline Floats power_of_2(Floats x) {
  x = x < -126.0f ? all(-126.0f) : x;
  const Floats shifted = x + 12582912.0f;  // rounds to a whole number in the low mantissa bits
  const Floats r = x - (shifted - 12582912.0f);
  Floats p = r * 1.535336188e-4f + 1.339887440e-3f;
  p = p * r + 9.618437358e-3f;
  p = p * r + 5.550332471e-2f;
  p = p * r + 2.402264791e-1f;
  p = p * r + 6.931472029e-1f;
  p = p * r + 1.0f;
  return p * reinterpret_cast<Floats>((reinterpret_cast<Words>(shifted) << 23) + 0x3f800000u);
}

inline float largest_of(const float* x, std::int64_t count) {
  const Floats lowest = all(-__builtin_inff());
  Floats largest = lowest;
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const Floats v = i + kLanes <= count ? load(x + i) : (first_lanes(count - i) ? load(x + i) : lowest);
    largest = v > largest ? v : largest;
  }
  float most = largest[0];
  for (int i = 1; i < kLanes; ++i) most = largest[i] > most ? largest[i] : most;
  return most;
}

// p = e^(scale * scores - shift) of the first `valid` scores, then zeros up to `width`; the sum of p before it is
// rounded. Whole vectors are read and written: rows have room for them.
template <class T>
float exponentials(const float* scores, float scale, float shift, std::int64_t valid, std::int64_t width, T* p) {
  const float scale2 = scale * kLog2E;
  const float shift2 = shift * kLog2E;
  Floats sum = {};
  for (std::int64_t i = 0; i < width; i += kLanes) {
    Floats v = {};
    if (i < valid) {
      v = power_of_2(load(scores + i) * scale2 - shift2);
      if (i + kLanes > valid) v = first_lanes(valid - i) ? v : Floats{};
    }
    sum += v;
    store(p + i, v);
  }
  return sum_of(sum);
}

// p as above, and the scores' gradient ds = p (dp - mean) scale, `mean` being the row's sum of p dp. p may be scores,
// ds dp.
template <class T>
void score_gradients(const float* scores, const float* dp, float scale, float shift, float mean, std::int64_t valid,
                     std::int64_t width, T* p, T* ds) {
  const float scale2 = scale * kLog2E;
  const float shift2 = shift * kLog2E;
  for (std::int64_t i = 0; i < width; i += kLanes) {
    Floats v = {};
    Floats dv = {};
    if (i < valid) {
      v = power_of_2(load(scores + i) * scale2 - shift2);
      dv = v * ((load(dp + i) - mean) * scale);
      if (i + kLanes > valid) {
        const Ints there = first_lanes(valid - i);
        v = there ? v : Floats{};
        dv = there ? dv : Floats{};
      }
    }
    store(p + i, v);
    store(ds + i, dv);
  }
}

// to = factor * from. The two may be one row of floats.
template <class To>
void scaled(const float* from, float factor, std::int64_t count, To* to) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i) * factor);
  for (; i < count; ++i) round_to(from[i] * factor, to[i]);
}

template <class T>
float dot(const T* x, const T* y, std::int64_t count) {
  Floats sum = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sum += load(x + i) * load(y + i);
  float rest = 0;
  for (; i < count; ++i) rest += value_of(x[i]) * value_of(y[i]);
  return sum_of(sum) + rest;
}

struct Products {
  Sgemm sgemm;
  GemmKernel kernel;
  void operator()(const Gemm<float, float>& gemm) const { multiply(gemm, sgemm); }
  void operator()(const Gemm<Bf16, float>& gemm) const { multiply(gemm, kernel); }
};

// The scores at hand: queries [query, query + queries) against keys [key, key + keys).
struct ScoreTile {
  std::int64_t query = 0, queries = 0, key = 0, keys = 0;
  // How many of the keys row r may see.
  std::int64_t visible(std::int64_t r) const {
    const std::int64_t seen = query + r + 1 - key;
    return seen < 0 ? 0 : seen < keys ? seen : keys;
  }
};

// Scratch is given out from front to back, in multiples of 64 bytes but for what comes last.
template <class T>
T* take(std::byte*& scratch, std::int64_t count) {
  T* const taken = reinterpret_cast<T*>(scratch);
  scratch += count * static_cast<std::int64_t>(sizeof(T));
  return taken;
}

// Rows of one document, by their numbers among all sequences' and in their own.
struct DocumentRows {
  std::int64_t row = 0, begin = 0, count = 0;
};
// task(DocumentRows), for each document of a sequence in order.
template <class Task>
void each_document(const AttentionSizes& sizes, const std::int32_t* starts, std::int64_t sequence, const Task& task) {
  const std::int64_t first = sequence * sizes.length;
  for (std::int64_t begin = 0, end = 0; begin < sizes.length; begin = end) {
    end = starts == nullptr ? sizes.length : begin + 1;
    while (end < sizes.length && starts[first + end] == begin) ++end;
    task(DocumentRows{first + begin, begin, end - begin});
  }
}

// One head from a row on: where its query, key and value begin.
template <class T>
struct HeadRows {
  const T *query, *key, *value;
  std::int64_t ld;
};
template <class T>
HeadRows<T> head_rows(const AttentionSizes& sizes, const T* qkv, std::int64_t first_row, std::int64_t head) {
  const std::int64_t group = sizes.heads / sizes.key_value_heads;
  const T* const row = qkv + first_row * sizes.qkv_columns();
  const T* const key = row + (sizes.heads + head / group) * sizes.head_dim;
  return {row + head * sizes.head_dim, key, key + sizes.key_value_heads * sizes.head_dim, sizes.qkv_columns()};
}

constexpr std::int64_t min_of(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t scores_ld(const AttentionSizes& sizes) {
  return sizes.length < kAttentionKeys ? (sizes.length + 15) / 16 * 16 : kAttentionKeys;
}

// scores = left [queries] right [keys]^T: q k^T, or dout v^T.
template <class T>
Gemm<T, float> scores_of(const ScoreTile& tile, const T* left, std::int64_t ld_left, const T* right,
                         std::int64_t ld_right, std::int64_t head_dim, float* scores, std::int64_t ld) {
  return {.transpose_b = true,
          .m = tile.queries,
          .n = tile.keys,
          .k = head_dim,
          .a = left + tile.query * ld_left,
          .lda = ld_left,
          .b = right + tile.key * ld_right,
          .ldb = ld_right,
          .c = scores,
          .ldc = ld};
}
// sum [queries] (+)= weights [queries, keys] right [keys]: p v, or ds k.
template <class T>
Gemm<T, float> over_keys(const ScoreTile& tile, const T* weights, std::int64_t ld, const T* right,
                         std::int64_t ld_right, std::int64_t head_dim, float* sum) {
  return {.m = tile.queries,
          .n = head_dim,
          .k = tile.keys,
          .a = weights,
          .lda = ld,
          .b = right + tile.key * ld_right,
          .ldb = ld_right,
          .c = sum,
          .ldc = head_dim,
          .accumulate = tile.key > 0};
}
// sum [keys] += weights [queries, keys]^T left [queries]: p^T dout, or ds^T q.
template <class T>
Gemm<T, float> over_queries(const ScoreTile& tile, const T* weights, std::int64_t ld, const T* left,
                            std::int64_t ld_left, std::int64_t head_dim, float* sum) {
  return {.transpose_a = true,
          .m = tile.keys,
          .n = head_dim,
          .k = tile.queries,
          .a = weights,
          .lda = ld,
          .b = left + tile.query * ld_left,
          .ldb = ld_left,
          .c = sum + tile.key * head_dim,
          .ldc = head_dim,
          .accumulate = true};
}

// A row's softmax over the keys so far: `sum` of e^(score - largest).
struct RowState {
  float largest, sum;
};

// Goes on with the softmax of each row of the tile; what was summed for smaller maxima is scaled down.
template <class T>
void softmax_tile(const ScoreTile& tile, float scale, std::int64_t head_dim, const float* scores, std::int64_t ld, T* p,
                  RowState* states, float* sums) {
  for (std::int64_t r = 0; r < tile.queries; ++r) {
    const float* const row = scores + r * ld;
    RowState& state = states[r];
    const std::int64_t visible = tile.visible(r);
    const float here = largest_of(row, visible) * scale;
    const float largest = tile.key == 0 || here > state.largest ? here : state.largest;
    const float sum = exponentials(row, scale, largest, visible, tile.keys, p + r * ld);
    if (tile.key == 0) {
      state = {largest, sum};
      continue;
    }
    if (largest > state.largest) {
      const float shrink = __builtin_expf(state.largest - largest);
      scaled(sums + r * head_dim, shrink, head_dim, sums + r * head_dim);
      state.sum *= shrink;
    }
    state = {largest, state.sum + sum};
  }
}

template <class T>
struct ForwardScratch {
  float* scores;  // [kAttentionQueries, ld]
  T* p;
  float* sums;  // [kAttentionQueries, head_dim]
  RowState* states;
};
template <class T>
ForwardScratch<T> forward_scratch(const AttentionSizes& sizes, std::byte* scratch) {
  const std::int64_t tile = kAttentionQueries * scores_ld(sizes);
  ForwardScratch<T> s;
  s.scores = take<float>(scratch, tile);
  s.p = sizeof(T) == sizeof(float) ? reinterpret_cast<T*>(s.scores) : take<T>(scratch, tile);
  s.sums = take<float>(scratch, kAttentionQueries * sizes.head_dim);
  s.states = take<RowState>(scratch, kAttentionQueries);
  return s;
}

// logsumexp: of the document's first row.
template <class T>
void document_forward(const AttentionPass<T>& pass, const DocumentRows& document, std::int64_t head, float* logsumexp,
                      const ForwardScratch<T>& s, const Products& multiply_by) {
  const AttentionSizes& sizes = pass.sizes;
  const std::int64_t head_dim = sizes.head_dim;
  const std::int64_t ld = scores_ld(sizes);
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(head_dim));
  const HeadRows<T> rows = head_rows(sizes, pass.qkv, document.row, head);
  T* const out = pass.out + document.row * sizes.columns() + head * head_dim;

  for (std::int64_t query = 0; query < document.count; query += kAttentionQueries) {
    ScoreTile tile{.query = query, .queries = min_of(kAttentionQueries, document.count - query)};
    const std::int64_t keys = query + tile.queries;
    for (tile.key = 0; tile.key < keys; tile.key += kAttentionKeys) {
      tile.keys = min_of(kAttentionKeys, keys - tile.key);
      multiply_by(scores_of(tile, rows.query, rows.ld, rows.key, rows.ld, head_dim, s.scores, ld));
      softmax_tile(tile, scale, head_dim, s.scores, ld, s.p, s.states, s.sums);
      multiply_by(over_keys(tile, s.p, ld, rows.value, rows.ld, head_dim, s.sums));
    }
    for (std::int64_t r = 0; r < tile.queries; ++r) {
      scaled(s.sums + r * head_dim, 1.0f / s.states[r].sum, head_dim, out + (query + r) * sizes.columns());
      logsumexp[query + r] = s.states[r].largest + __builtin_logf(s.states[r].sum);
    }
  }
}

template <class T>
void head_forward(const AttentionPass<T>& pass, std::int64_t sequence, std::int64_t head, std::byte* scratch,
                  const Products& multiply_by) {
  const ForwardScratch<T> s = forward_scratch<T>(pass.sizes, scratch);
  float* const logsumexp = pass.logsumexp + (sequence * pass.sizes.heads + head) * pass.sizes.length;
  each_document(pass.sizes, pass.starts, sequence, [&](const DocumentRows& document) {
    document_forward(pass, document, head, logsumexp + document.begin, s, multiply_by);
  });
}

template <class T>
struct BackwardScratch {
  float *scores, *dscores;  // [kAttentionQueries, ld]
  T *p, *ds;
  float *dquery, *means;  // [kAttentionQueries, head_dim], [kAttentionQueries]
  float *dkey, *dvalue;   // [length, head_dim]
};
template <class T>
BackwardScratch<T> backward_scratch(const AttentionSizes& sizes, std::byte* scratch) {
  const std::int64_t tile = kAttentionQueries * scores_ld(sizes);
  BackwardScratch<T> s;
  s.scores = take<float>(scratch, tile);
  s.dscores = take<float>(scratch, tile);
  s.p = sizeof(T) == sizeof(float) ? reinterpret_cast<T*>(s.scores) : take<T>(scratch, tile);
  s.ds = sizeof(T) == sizeof(float) ? reinterpret_cast<T*>(s.dscores) : take<T>(scratch, tile);
  s.dquery = take<float>(scratch, kAttentionQueries * sizes.head_dim);
  s.means = take<float>(scratch, kAttentionQueries);
  s.dkey = take<float>(scratch, sizes.length * sizes.head_dim);
  s.dvalue = take<float>(scratch, sizes.length * sizes.head_dim);
  return s;
}

// One head's share of dkey and dvalue of a document, and its dquery. logsumexp: of the document's first row.
template <class T>
void document_backward(const AttentionBackwardPass<T>& pass, const DocumentRows& document, std::int64_t head,
                       const float* logsumexp, const BackwardScratch<T>& s, const Products& multiply_by) {
  const AttentionSizes& sizes = pass.sizes;
  const std::int64_t head_dim = sizes.head_dim;
  const std::int64_t ld = scores_ld(sizes);
  const std::int64_t columns = sizes.columns();
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(head_dim));
  const HeadRows<T> rows = head_rows(sizes, pass.qkv, document.row, head);
  const std::int64_t first = document.row * columns + head * head_dim;
  const T* const dout = pass.dout + first;
  const T* const out = pass.out + first;
  T* const dquery = pass.dqkv + document.row * rows.ld + head * head_dim;
  float* const dkey = s.dkey + document.begin * head_dim;
  float* const dvalue = s.dvalue + document.begin * head_dim;

  for (std::int64_t query = 0; query < document.count; query += kAttentionQueries) {
    ScoreTile tile{.query = query, .queries = min_of(kAttentionQueries, document.count - query)};
    const std::int64_t keys = query + tile.queries;
    for (std::int64_t r = 0; r < tile.queries; ++r) {
      s.means[r] = dot(dout + (query + r) * columns, out + (query + r) * columns, head_dim);
    }
    for (tile.key = 0; tile.key < keys; tile.key += kAttentionKeys) {
      tile.keys = min_of(kAttentionKeys, keys - tile.key);
      multiply_by(scores_of(tile, rows.query, rows.ld, rows.key, rows.ld, head_dim, s.scores, ld));
      multiply_by(scores_of(tile, dout, columns, rows.value, rows.ld, head_dim, s.dscores, ld));
      for (std::int64_t r = 0; r < tile.queries; ++r) {
        score_gradients(s.scores + r * ld, s.dscores + r * ld, scale, logsumexp[query + r], s.means[r], tile.visible(r),
                        tile.keys, s.p + r * ld, s.ds + r * ld);
      }
      multiply_by(over_queries(tile, s.p, ld, dout, columns, head_dim, dvalue));
      multiply_by(over_queries(tile, s.ds, ld, rows.query, rows.ld, head_dim, dkey));
      multiply_by(over_keys(tile, s.ds, ld, rows.key, rows.ld, head_dim, s.dquery));
    }
    for (std::int64_t r = 0; r < tile.queries; ++r) {
      scaled(s.dquery + r * head_dim, 1.0f, head_dim, dquery + (query + r) * rows.ld);
    }
  }
}

template <class T>
void group_backward(const AttentionBackwardPass<T>& pass, std::int64_t sequence, std::int64_t key_value_head,
                    std::byte* scratch, const Products& multiply_by) {
  const AttentionSizes& sizes = pass.sizes;
  const std::int64_t head_dim = sizes.head_dim;
  const std::int64_t group = sizes.heads / sizes.key_value_heads;
  const BackwardScratch<T> s = backward_scratch<T>(sizes, scratch);
  const std::int64_t numel = sizes.length * head_dim;
  for (std::int64_t i = 0; i < numel; ++i) s.dkey[i] = 0;
  for (std::int64_t i = 0; i < numel; ++i) s.dvalue[i] = 0;
  for (std::int64_t head = key_value_head * group; head < (key_value_head + 1) * group; ++head) {
    const float* const logsumexp = pass.logsumexp + (sequence * sizes.heads + head) * sizes.length;
    each_document(sizes, pass.starts, sequence, [&](const DocumentRows& document) {
      document_backward(pass, document, head, logsumexp + document.begin, s, multiply_by);
    });
  }

  T* dkey = pass.dqkv + sequence * sizes.length * sizes.qkv_columns() + (sizes.heads + key_value_head) * head_dim;
  for (std::int64_t r = 0; r < sizes.length; ++r, dkey += sizes.qkv_columns()) {
    scaled(s.dkey + r * head_dim, 1.0f, head_dim, dkey);
    scaled(s.dvalue + r * head_dim, 1.0f, head_dim, dkey + sizes.key_value_heads * head_dim);
  }
}

}  // namespace
}  // namespace atl
