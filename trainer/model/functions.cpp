#include "trainer/model/functions.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "trainer/model/cpu_kernels.h"

namespace atl {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr std::int64_t kRowsPerTask = 64;
constexpr std::int64_t kRowsPerPartialSum = 512;  // fixed, so that sums do not depend on the number of threads

void add_weight_gradient(const Tensor& gradient, const Tensor& dy, const Tensor& x) {
  Tensor sum = gradient;
  at::addmm_out(sum, gradient, dy.t(), x);
}

struct RmsNorm : Function<RmsNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& weight_gradient,
                        double epsilon) {
    auto [y, inverse_rms] = rms_norm_forward(x, weight, epsilon);
    context->save_for_backward({x, inverse_rms});
    context->saved_data["weight"] = weight;
    context->saved_data["gradient"] = weight_gradient;
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& dy) {
    const variable_list saved = context->get_saved_variables();
    const ParameterView weight{context->saved_data["weight"].toTensor(), context->saved_data["gradient"].toTensor()};
    return {rms_norm_backward(dy[0].contiguous(), saved[0], weight, saved[1]), Tensor(), Tensor(), Tensor()};
  }
};

struct Linear : Function<Linear> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const std::optional<Tensor>& residual,
                        const Tensor& weight, const Tensor& weight_gradient) {
    context->save_for_backward({x});
    context->saved_data["weight"] = weight;
    context->saved_data["gradient"] = weight_gradient;
    context->saved_data["has_residual"] = residual.has_value();
    return residual ? at::addmm(*residual, x, weight.t()) : at::mm(x, weight.t());
  }
  static variable_list backward(AutogradContext* context, const variable_list& dy) {
    const Tensor x = context->get_saved_variables()[0];
    const Tensor weight = context->saved_data["weight"].toTensor();
    add_weight_gradient(context->saved_data["gradient"].toTensor(), dy[0], x);
    return {at::mm(dy[0], weight), context->saved_data["has_residual"].toBool() ? dy[0] : Tensor(), Tensor(), Tensor()};
  }
};

struct Swiglu : Function<Swiglu> {
  static Tensor forward(AutogradContext* context, const Tensor& gate_up) {
    const std::int64_t rows = gate_up.size(0);
    const std::int64_t inner = gate_up.size(1) / 2;
    Tensor a = at::empty({rows, inner}, gate_up.options());
    const float* from = gate_up.const_data_ptr<float>();
    float* to = a.mutable_data_ptr<float>();
    at::parallel_for(0, rows, kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
      swiglu_rows(from + begin * 2 * inner, end - begin, inner, to + begin * inner);
    });
    context->save_for_backward({gate_up});
    return a;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor gate_up = context->get_saved_variables()[0];
    const Tensor da = gradients[0].contiguous();
    const std::int64_t inner = gate_up.size(1) / 2;
    Tensor dgate_up = at::empty_like(gate_up);
    const float* from = gate_up.const_data_ptr<float>();
    const float* upstream = da.const_data_ptr<float>();
    float* to = dgate_up.mutable_data_ptr<float>();
    at::parallel_for(0, gate_up.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
      swiglu_backward_rows(upstream + begin * inner, from + begin * 2 * inner, end - begin, inner,
                           to + begin * 2 * inner);
    });
    return {dgate_up};
  }
};

// A head's columns of qkv as [sequences, heads, length, head_dim], without a copy.
Tensor heads_of(const Tensor& qkv, const AttentionShape& shape, std::int64_t first_head, std::int64_t heads) {
  return qkv.view({shape.sequences, shape.length, -1, shape.head_dim}).narrow(2, first_head, heads).transpose(1, 2);
}

// Rotates `heads` heads of every row of `from` into `to`; a row's position is its index within its sequence.
void rotate(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride, std::int64_t heads,
            const AttentionShape& shape, const RopeTable& rope, float direction) {
  const std::int64_t half = shape.head_dim / 2;
  at::parallel_for(0, shape.sequences * shape.length, kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t angle = row % shape.length * half;
      rope_row(from + row * from_stride, {rope.cosines.data() + angle, rope.sines.data() + angle}, heads,
               shape.head_dim, direction, to + row * to_stride);
    }
  });
}

struct RotaryAttention : Function<RotaryAttention> {
  static Tensor forward(AutogradContext* context, const Tensor& qkv, const AttentionShape& shape,
                        const RopeTable* rope) {
    const std::int64_t stride = qkv.size(1);
    // Not through an operator: nothing else needs the unrotated values, and no version counter should move.
    auto* data = static_cast<float*>(qkv.unsafeGetTensorImpl()->mutable_data());
    rotate(data, stride, data, stride, shape.heads + shape.key_value_heads, shape, *rope, 1.0f);
    auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
        heads_of(qkv, shape, 0, shape.heads), heads_of(qkv, shape, shape.heads, shape.key_value_heads),
        heads_of(qkv, shape, shape.heads + shape.key_value_heads, shape.key_value_heads), 0.0, true);
    context->save_for_backward({qkv});
    context->saved_data["out"] = out;
    context->saved_data["logsumexp"] = logsumexp;
    context->saved_data["shape"] =
        std::vector<std::int64_t>{shape.sequences, shape.length, shape.heads, shape.key_value_heads, shape.head_dim};
    context->saved_data["rope"] = reinterpret_cast<std::int64_t>(rope);
    return out.transpose(1, 2).reshape({shape.sequences * shape.length, shape.heads * shape.head_dim});
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor qkv = context->get_saved_variables()[0];
    const auto sizes = context->saved_data["shape"].toIntVector();
    const AttentionShape shape{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]};
    // What forward() kept there: NOLINTNEXTLINE(performance-no-int-to-ptr)
    const auto* rope = reinterpret_cast<const RopeTable*>(context->saved_data["rope"].toInt());
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        heads_of(gradients[0].contiguous(), shape, 0, shape.heads), heads_of(qkv, shape, 0, shape.heads),
        heads_of(qkv, shape, shape.heads, shape.key_value_heads),
        heads_of(qkv, shape, shape.heads + shape.key_value_heads, shape.key_value_heads),
        context->saved_data["out"].toTensor(), context->saved_data["logsumexp"].toTensor(), 0.0, true);
    Tensor dqkv = at::empty_like(qkv);
    const std::int64_t stride = qkv.size(1);
    const std::int64_t query = shape.heads * shape.head_dim;
    const std::int64_t key_value = shape.key_value_heads * shape.head_dim;
    const Tensor q_rows = dq.transpose(1, 2).contiguous();
    const Tensor k_rows = dk.transpose(1, 2).contiguous();
    float* to = dqkv.mutable_data_ptr<float>();
    rotate(q_rows.const_data_ptr<float>(), query, to, stride, shape.heads, shape, *rope, -1.0f);
    rotate(k_rows.const_data_ptr<float>(), key_value, to + query, stride, shape.key_value_heads, shape, *rope, -1.0f);
    heads_of(dqkv, shape, shape.heads + shape.key_value_heads, shape.key_value_heads).copy_(dv);
    return {dqkv, Tensor(), Tensor()};
  }
};

}  // namespace

std::pair<Tensor, Tensor> rms_norm_forward(const Tensor& x, const Tensor& weight, double epsilon) {
  const std::int64_t hidden = x.size(1);
  Tensor y = at::empty_like(x);
  Tensor inverse_rms = at::empty({x.size(0)}, x.options());
  const float* from = x.const_data_ptr<float>();
  const float* scale = weight.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  float* inverse = inverse_rms.mutable_data_ptr<float>();
  at::parallel_for(0, x.size(0), kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    rms_norm_rows(from + begin * hidden, scale, static_cast<float>(epsilon), end - begin, hidden, to + begin * hidden,
                  inverse + begin);
  });
  return {y, inverse_rms};
}

Tensor rms_norm_backward(const Tensor& dy, const Tensor& x, const ParameterView& weight, const Tensor& inverse_rms) {
  const std::int64_t rows = x.size(0);
  const std::int64_t hidden = x.size(1);
  const std::int64_t parts = (rows + kRowsPerPartialSum - 1) / kRowsPerPartialSum;
  Tensor dx = at::empty_like(x);
  std::vector<float> partial(static_cast<std::size_t>(parts * hidden), 0.0f);
  const float* upstream = dy.const_data_ptr<float>();
  const float* from = x.const_data_ptr<float>();
  const float* scale = weight.value.const_data_ptr<float>();
  const float* inverse = inverse_rms.const_data_ptr<float>();
  float* to = dx.mutable_data_ptr<float>();
  at::parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      const std::int64_t first = part * kRowsPerPartialSum;
      const std::int64_t count = std::min(kRowsPerPartialSum, rows - first);
      rms_norm_backward_rows(upstream + first * hidden, from + first * hidden, scale, inverse + first, count, hidden,
                             to + first * hidden, partial.data() + part * hidden);
    }
  });
  float* sum = weight.gradient.mutable_data_ptr<float>();
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::int64_t i = 0; i < hidden; ++i) sum[i] += partial[static_cast<std::size_t>(part * hidden + i)];
  }
  return dx;
}

Tensor rms_norm(const Tensor& x, const ParameterView& weight, double epsilon) {
  return RmsNorm::apply(x, weight.value, weight.gradient, epsilon);
}

Tensor linear(const Tensor& x, const ParameterView& weight) {
  return Linear::apply(x, std::optional<Tensor>(), weight.value, weight.gradient);
}

Tensor linear_add(const Tensor& residual, const Tensor& x, const ParameterView& weight) {
  return Linear::apply(x, std::optional<Tensor>(residual), weight.value, weight.gradient);
}

Tensor rotary_attention(const Tensor& qkv, const AttentionShape& shape, const RopeTable& rope) {
  return RotaryAttention::apply(qkv, shape, &rope);
}

Tensor swiglu(const Tensor& gate_up) { return Swiglu::apply(gate_up); }

}  // namespace atl
