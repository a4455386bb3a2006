#include "app/cli/validate_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/base/printable.h"
#include "net/check/thresholds.h"
#include "net/model/config.h"
#include "net/model/fragments.h"
#include "net/model/train_only.h"

namespace atl {
namespace {

constexpr std::size_t kLongestName = 64;  // what an invite carries

}  // namespace

Status validate_run_name(const std::string& name) {
  if (!name.empty() && name.size() <= kLongestName && is_printable(name)) return ok_status();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--name must be from 1 to {} bytes of text in one line", kLongestName)};
}

Status validate_run(const RunConfig& run, std::uint32_t vocab_size) {
  ATOLL_RETURN_IF_ERROR(parse_check_policy(run.check_json));
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(run.model_json));
  ATOLL_RETURN_IF_ERROR(check_trainable(model, vocab_size, run.sequence_length));
  ATOLL_RETURN_IF_ERROR(check_train_only(model, run.train_only));
  if (const auto fragments = fragments_of(layout_of_training(model, run.train_only), run.fragments); !fragments.ok()) {
    return Error{ErrorCode::kInvalidArgument, fragments.error().message + "; choose fewer --fragments"};
  }
  if (!(run.inner.learning_rate > 0)) {
    return Error{ErrorCode::kInvalidArgument, "the learning rate must be positive (--lr)"};
  }
  if (run.outer_learning_rate > 0) return ok_status();
  return Error{ErrorCode::kInvalidArgument, "the outer learning rate must be positive (--outer-lr)"};
}

}  // namespace atl
