// How many floating-point operations training costs a token, forward and backward, by the two formulas that others
// report: what is computed again in the backward pass counts in neither, and attention counts as if it were not causal.
// Pure; any thread.
//
//   L layers; H heads of Q values; d = hidden_size; S = tokens of a sequence. A matrix product of N weights costs a
//   token 2 N forward, 2 N for the gradient of its input and 2 N for that of its weights; the scores and what they
//   weigh 2 * 2 L H Q S and twice that.
//
// Where a run trains some parameters alone, what is not computed does not count, by either: gradients of weights that
// are frozen, and those of inputs below the lowest parameter that is trained (backward_needs.h).
#pragma once

#include <cstdint>

#include "net/model/config.h"
#include "net/model/layout.h"

namespace atl {

// With everything trained 6 N + 12 L d S, as the PaLM paper has it (arXiv:2204.02311, appendix B). N: all parameters,
// the embedding table and the norms, too; a table that is also the output matrix (tied) once. `layout`: of the model,
// with what is trained of it.
double flops_per_token(const ModelConfig& config, const ParameterLayout& layout, std::int64_t length);

// With everything trained 6 N + 12 L H Q S, as torchtitan has it (get_nparams_and_active_nparams and
// quadratic_attention_flops_per_token in torchtitan/models/utils.py), whose MFU is this times tokens per second over
// the devices' peak. N: all parameters but the embedding table, which is only looked up; where it is also the output
// matrix (tied), it counts.
double torchtitan_flops_per_token(const ModelConfig& config, const ParameterLayout& layout, std::int64_t length);

}  // namespace atl
