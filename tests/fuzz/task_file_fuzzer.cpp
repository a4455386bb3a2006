// Task files, which an organiser hands to every island, and the hub's words of contributors and of the run's past: what
// is read is within its bounds, and an error can be shown.
#include <string>

#include "net/base/printable.h"
#include "net/evaluate/task_file.h"
#include "net/wire/contributors.h"
#include "net/wire/told_past.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

void check_task(std::string_view text) {
  const auto task = read_task(text, "fuzz");
  if (!task.ok()) {
    ATOLL_FUZZ_CHECK(!task.error().message.empty() && task.error().message.size() < 65536);
    return;
  }
  ATOLL_FUZZ_CHECK(!task->documents.empty() && text_bytes(*task) <= kMaxTaskText);
  for (const TaskDocument& document : task->documents) {
    ATOLL_FUZZ_CHECK(!document.contexts.empty() && document.contexts.size() == document.continuations.size());
    const bool chooses = task->kind == TaskKind::kMultipleChoice;
    ATOLL_FUZZ_CHECK(chooses ? document.choices.size() == document.contexts.size() && !document.gold.empty()
                             : document.contexts.size() == 1);
    for (const std::int64_t gold : document.gold) {
      ATOLL_FUZZ_CHECK(gold >= 0 && static_cast<std::size_t>(gold) < document.choices.size());
    }
  }
}

void check_contributors(std::string_view text) {
  const auto contributors = decode_contributors(text);
  if (!contributors.ok()) return ATOLL_FUZZ_CHECK(!contributors.error().message.empty());
  ATOLL_FUZZ_CHECK(contributors->size() <= kMaxContributors);
  for (const Contributor& contributor : *contributors) ATOLL_FUZZ_CHECK(is_printable(contributor.name));
  const std::string once = encode(*contributors);
  const auto again = decode_contributors(once);
  ATOLL_FUZZ_CHECK(again.ok() && encode(*again) == once);
}

void check_past(std::string_view text) {
  const auto past = decode_past(text);
  if (!past.ok()) return ATOLL_FUZZ_CHECK(!past.error().message.empty());
  ATOLL_FUZZ_CHECK(validate(*past).ok());
  const std::string once = encode(*past);
  const auto again = decode_past(once);
  ATOLL_FUZZ_CHECK(again.ok() && encode(*again) == once);
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  fuzz::Input input(data, size);
  const auto mode = input.get<std::uint8_t>() % 3;
  const std::string text = to_string(input.rest());
  if (mode == 0) fuzz::check_task(text);
  if (mode == 1) fuzz::check_contributors(text);
  if (mode == 2) fuzz::check_past(text);
  return 0;
}
