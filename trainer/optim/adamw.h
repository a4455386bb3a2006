// What AdamW is set to (net/step/operation.h says what it computes).
#pragma once

#include "net/base/result.h"

namespace atl {

struct AdamWHyper {
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
  float weight_decay = 0.1f;

  Status validate() const;
};

}  // namespace atl
