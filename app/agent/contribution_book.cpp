#include "app/agent/contribution_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/control/json_fields.h"

namespace atl {
namespace {

constexpr std::size_t kMaxFileBytes = 256u << 10;
constexpr std::size_t kMaxRunId = 64;  // bytes
constexpr std::chrono::seconds kWriteEvery{10};

nlohmann::json json_of(const Contribution& contribution) {
  return {{"tokens", contribution.tokens},
          {"rounds_accepted", contribution.rounds_accepted},
          {"bytes_sent", contribution.bytes_sent},
          {"seconds", contribution.seconds}};
}

Status read(const nlohmann::json& json, const char* what, Contribution& contribution) {
  JsonFields fields(json, what);
  fields.read("tokens", contribution.tokens).read("rounds_accepted", contribution.rounds_accepted);
  fields.read("bytes_sent", contribution.bytes_sent).read("seconds", contribution.seconds);
  ATOLL_RETURN_IF_ERROR(fields.status());
  const bool is_time = std::isfinite(contribution.seconds) && contribution.seconds >= 0;
  return is_time ? ok_status() : Status(Error{ErrorCode::kProtocol, fmt::format("{}: \"seconds\" is no time", what)});
}

nlohmann::json part_of(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() ? *found : nlohmann::json::object();
}

void add(Contribution& sum, const Contribution& more) {
  sum.tokens += more.tokens;
  sum.rounds_accepted += more.rounds_accepted;
  sum.bytes_sent += more.bytes_sent;
  sum.seconds += more.seconds;
}

bool is_nothing(const Contribution& given) {
  return given.tokens == 0 && given.rounds_accepted == 0 && given.bytes_sent == 0 && !(given.seconds > 0);
}

}  // namespace

Contribution contributed_since(const Contribution& before, const Contribution& now) {
  const auto more = [](auto earlier, auto later) { return later > earlier ? later - earlier : decltype(later){0}; };
  return {more(before.tokens, now.tokens), more(before.rounds_accepted, now.rounds_accepted),
          more(before.bytes_sent, now.bytes_sent), more(before.seconds, now.seconds)};
}

// ---- the file

std::string ContributionFile::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Run& run : runs) list.push_back({{"run_id", run.run_id}, {"given", json_of(run.given)}});
  const nlohmann::json json = {{"version", kVersion},
                               {"life", json_of(life)},
                               {"runs", std::move(list)},
                               {"trainer", {{"pid", trainer.pid}, {"counted", json_of(trainer.counted)}}}};
  return json.dump(2) + "\n";
}

Result<ContributionFile> ContributionFile::from_json(std::string_view text) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json json, parse_control_json(text));
  JsonFields fields(json, "contributions.json");
  int version = 0;
  ATOLL_RETURN_IF_ERROR(fields.read("version", version).status());
  if (version != kVersion) {
    return Error{ErrorCode::kVersionUnsupported, "contributions.json was written by another version of Atoll"};
  }
  const nlohmann::json* runs = fields.array("runs", kMaxRuns);
  ATOLL_RETURN_IF_ERROR(fields.status());
  ContributionFile file;
  ATOLL_RETURN_IF_ERROR(read(part_of(json, "life"), "life", file.life));
  for (const nlohmann::json& entry : *runs) {
    Run& run = file.runs.emplace_back();
    ATOLL_RETURN_IF_ERROR(JsonFields(entry, "run").read("run_id", run.run_id).status());
    if (run.run_id.size() > kMaxRunId) return Error{ErrorCode::kProtocol, "a run's id is too long"};
    ATOLL_RETURN_IF_ERROR(read(part_of(entry, "given"), "given", run.given));
  }
  const nlohmann::json trainer = part_of(json, "trainer");
  ATOLL_RETURN_IF_ERROR(JsonFields(trainer, "trainer").read("pid", file.trainer.pid).status());
  ATOLL_RETURN_IF_ERROR(read(part_of(trainer, "counted"), "counted", file.trainer.counted));
  return file;
}

// ---- the book

ContributionBook::ContributionBook(std::filesystem::path file) : file_(std::move(file)) {
  const auto text = read_file(file_, kMaxFileBytes);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return;
  auto book = text.ok() ? ContributionFile::from_json(*text) : Result<ContributionFile>(text.error());
  MutexLock lock(mutex_);
  if (book.ok()) {
    book_ = std::move(*book);
    return;
  }
  may_write_ = false;
  trouble_ = fmt::format("what this machine contributed is not counted: {}: {}; move the file away", file_.string(),
                         book.error().message);
}

void ContributionBook::follow(std::int64_t pid, bool is_new) {
  MutexLock lock(mutex_);
  if (is_new || book_.trainer.pid != pid) book_.trainer = {pid, {}};
}

ContributionFile::Run& ContributionBook::run(const std::string& run_id) {
  auto& runs = book_.runs;
  const auto found = std::ranges::find(runs, run_id, &ContributionFile::Run::run_id);
  if (found != runs.end()) {
    std::rotate(found, found + 1, runs.end());
  } else {
    if (runs.size() == ContributionFile::kMaxRuns) runs.erase(runs.begin());
    runs.push_back({run_id, {}});
  }
  return runs.back();
}

void ContributionBook::take(const IslandState& state) {
  MutexLock lock(mutex_);
  if (state.pid == 0 || state.pid != book_.trainer.pid || state.run_id.empty() || state.run_id.size() > kMaxRunId) {
    return;
  }
  const Contribution now{state.tokens, state.rounds_accepted.value_or(0), state.bytes_sent,
                         std::max(0.0, state.inner_seconds) + std::max(0.0, state.sync_seconds)};
  const Contribution more = contributed_since(book_.trainer.counted, now);
  if (is_nothing(more)) return;
  add(book_.trainer.counted, more);
  add(run(state.run_id).given, more);
  add(book_.life, more);
  is_written_ = false;
}

ContributionView ContributionBook::of(const std::string& run_id) const {
  MutexLock lock(mutex_);
  const auto found = std::ranges::find(book_.runs, run_id, &ContributionFile::Run::run_id);
  return {found != book_.runs.end() ? found->given : Contribution{}, book_.life};
}

void ContributionBook::turn(Clock::time_point now) {
  if (now < write_at_) return;
  write_at_ = now + kWriteEvery;
  flush();
}

void ContributionBook::flush() {
  std::string text;
  {
    MutexLock lock(mutex_);
    if (is_written_ || !may_write_) return;
    text = book_.to_json();
    is_written_ = true;
  }
  const Status directory = make_directories(file_.parent_path(), FileMode::kPrivate);
  const Status written = directory.ok() ? write_file_atomically(file_, text, FileMode::kPrivate) : directory;
  MutexLock lock(mutex_);
  is_written_ = is_written_ && written.ok();
  trouble_ = written.ok() ? std::string() : "what this machine contributed is not kept: " + written.error().message;
}

std::string ContributionBook::trouble() const {
  MutexLock lock(mutex_);
  return trouble_;
}

}  // namespace atl
