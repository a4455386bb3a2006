#include "trainer/model/head.h"

#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <vector>

#include "trainer/model/functions.h"

namespace atl {
namespace {

constexpr std::int64_t kMaxLogits = std::int64_t{1} << 24;  // in one slice: 64 MiB, whatever the vocabulary
constexpr std::int64_t kRowsPerTask = 128;                  // fixed, so that sums do not depend on threads

std::int64_t rows_per_slice(std::int64_t vocab) { return std::max<std::int64_t>(1, kMaxLogits / vocab); }

LossSums cross_entropy(const at::Tensor& logits, const std::int32_t* labels, LossScale scale) {
  const std::int64_t rows = logits.size(0);
  const std::int64_t vocab = logits.size(1);
  const std::int64_t tasks = (rows + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<LossSums> partial(static_cast<std::size_t>(tasks));
  float* values = logits.mutable_data_ptr<float>();
  at::parallel_for(0, tasks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t first = task * kRowsPerTask;
      partial[static_cast<std::size_t>(task)] =
          cross_entropy_rows(values + first * vocab, labels + first, std::min(kRowsPerTask, rows - first), vocab,
                             scale.gradient_scale, scale.max_z_loss);
    }
  });
  LossSums sums;
  for (const LossSums& part : partial) {
    sums.cross_entropy += part.cross_entropy;
    sums.squared_max_logit += part.squared_max_logit;
  }
  return sums;
}

}  // namespace

at::Tensor embed(const at::Tensor& table, std::span<const std::int32_t> tokens) {
  const std::int64_t hidden = table.size(1);
  at::Tensor x = at::empty({static_cast<std::int64_t>(tokens.size()), hidden}, table.options());
  const float* from = table.const_data_ptr<float>();
  float* to = x.mutable_data_ptr<float>();
  for (const std::int32_t token : tokens) to = std::copy_n(from + token * hidden, hidden, to);
  return x;
}

void embed_backward(const at::Tensor& dx, std::span<const std::int32_t> tokens, const at::Tensor& gradient) {
  const std::int64_t hidden = gradient.size(1);
  const float* from = dx.const_data_ptr<float>();
  float* sums = gradient.mutable_data_ptr<float>();
  for (const std::int32_t token : tokens) {
    float* row = sums + token * hidden;
    for (std::int64_t i = 0; i < hidden; ++i) row[i] += from[i];
    from += hidden;
  }
}

at::Tensor Head::logits(const at::Tensor& x) const {
  return at::mm(rms_norm_forward(x, norm.value, epsilon).first, output.value.t());
}

LossSums Head::loss(const at::Tensor& x, std::span<const std::int32_t> labels) const {
  LossSums sums;
  const std::int64_t slice = rows_per_slice(output.value.size(0));
  for (std::int64_t first = 0; first < x.size(0); first += slice) {
    const at::Tensor rows = x.narrow(0, first, std::min(slice, x.size(0) - first));
    const LossSums part = cross_entropy(logits(rows), labels.data() + first, LossScale{});
    sums.cross_entropy += part.cross_entropy;
    sums.squared_max_logit += part.squared_max_logit;
  }
  return sums;
}

at::Tensor Head::backward(const at::Tensor& x, std::span<const std::int32_t> labels, LossScale scale,
                          LossSums& sums) const {
  const auto [normed, inverse_rms] = rms_norm_forward(x, norm.value, epsilon);
  at::Tensor dnormed = at::empty_like(normed);
  const std::int64_t slice = rows_per_slice(output.value.size(0));
  for (std::int64_t first = 0; first < x.size(0); first += slice) {
    const std::int64_t count = std::min(slice, x.size(0) - first);
    const at::Tensor rows = normed.narrow(0, first, count);
    const at::Tensor dlogits = at::mm(rows, output.value.t());
    const LossSums part = cross_entropy(dlogits, labels.data() + first, scale);
    sums.cross_entropy += part.cross_entropy;
    sums.squared_max_logit += part.squared_max_logit;
    at::Tensor weight_sum = output.gradient;
    at::addmm_out(weight_sum, output.gradient, dlogits.t(), rows);
    at::Tensor dslice = dnormed.narrow(0, first, count);
    at::mm_out(dslice, dlogits, output.value);
  }
  return rms_norm_backward(dnormed, x, norm, inverse_rms);
}

}  // namespace atl
