#include "trainer/optim/adamw.h"

#include <string>

namespace atl {

Status AdamWHyper::validate() const {
  const auto bad = [](const char* what) { return Error{ErrorCode::kInvalidArgument, std::string("AdamW: ") + what}; };
  if (!(beta1 >= 0 && beta1 < 1)) return bad("beta1 must be from 0 to below 1");
  if (!(beta2 >= 0 && beta2 < 1)) return bad("beta2 must be from 0 to below 1");
  if (!(epsilon > 0)) return bad("epsilon must be positive");
  if (!(weight_decay >= 0)) return bad("weight_decay must not be negative");
  return ok_status();
}

}  // namespace atl
