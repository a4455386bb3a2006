#include "trainer/island/kept_states.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "trainer/island/checkpoint.h"

namespace atl {
namespace {

constexpr std::string_view kPrefix = "outer.", kSuffix = ".state";

bool is_kept_name(const std::string& name) {
  return name == kStateFile || (name.starts_with(kPrefix) && name.ends_with(kSuffix));
}

}  // namespace

std::vector<KeptStates::Entry> KeptStates::entries() const {
  std::vector<Entry> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, failed)) {
    if (!entry.is_regular_file(failed) || !is_kept_name(entry.path().filename().string())) continue;
    Result<HeldState> state = OuterStateStore::peek(entry.path());
    const auto same_step = [&](const Entry& known) { return known.state == *state; };
    if (state.ok() && std::ranges::none_of(found, same_step)) found.push_back({std::move(*state), entry.path()});
  }
  std::ranges::sort(found, std::greater{}, [](const Entry& entry) { return entry.state.outer_step; });
  return found;
}

std::vector<HeldState> KeptStates::list() const {
  std::vector<HeldState> states;
  for (Entry& entry : entries()) {
    if (states.size() < kMaxHeldStates) states.push_back(std::move(entry.state));
  }
  return states;
}

Status KeptStates::make_room(OuterStep next) {
  const auto file = directory_ / kStateFile;
  const Result<HeldState> now = OuterStateStore::peek(file);
  if (!now.ok() || now->outer_step == next || keep_ < 2) return ok_status();
  // A second name for the same file, so that at no moment there is none.
  const auto aside = directory_ / fmt::format("outer.{}.state", now->outer_step.value);
  std::error_code failed;
  std::filesystem::remove(aside, failed);
  std::filesystem::create_hard_link(file, aside, failed);
  if (failed) return Error{ErrorCode::kIo, fmt::format("cannot keep {}: {}", aside.string(), failed.message())};
  return ok_status();
}

// The newest two, then those at validated rounds, then the others.
void KeptStates::prune() {
  std::vector<Entry> all = entries();
  const auto is_anchor = [this](const Entry& entry) {
    return anchor_every_ > 0 && entry.state.outer_step.value % anchor_every_ == 0;
  };
  const auto older = all.begin() + std::min<std::ptrdiff_t>(2, std::ssize(all));
  std::stable_partition(older, all.end(), is_anchor);
  for (std::size_t i = keep_; i < all.size(); ++i) {
    std::error_code failed;
    std::filesystem::remove(all[i].file, failed);
    if (failed) spdlog::warn("kept_state file={} error=\"{}\"", all[i].file.string(), failed.message());
  }
}

Result<FetchedState> KeptStates::load(const HeldState& wanted, std::int64_t numel) const {
  for (const Entry& entry : entries()) {
    if (entry.state == wanted) return OuterStateStore::read(entry.file, numel);
  }
  return Error{ErrorCode::kNotFound, fmt::format("outer step {} is not on this disk", wanted.outer_step.value)};
}

}  // namespace atl
