#include "app/agent/join_run.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "app/config/gpu_list.h"
#include "net/base/address.h"
#include "net/base/file.h"
#include "net/base/new_file.h"
#include "net/base/printable.h"
#include "net/base/unique_fd.h"
#include "net/disk/kept_states.h"
#include "net/enrol/client.h"
#include "net/enrol/join_key.h"
#include "net/tls/identity.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kEnrolTime{30};
constexpr std::chrono::seconds kRunAskTime{5};

std::string host_name() {
  char name[65] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "island";
}

// Before it is written down for good: another program may listen there.
Status check_free(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (failure != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("cannot listen on {}: {}", to_string(address), ::gai_strerror(failure))};
  }
  const UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int reuse = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  const bool bound = ::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0;
  const int reason = errno;
  ::freeaddrinfo(found);
  if (bound) return ok_status();
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("cannot listen on {}: {}; choose another with --listen HOST:PORT (port 0: any free one)",
                           to_string(address), std::strerror(reason))};
}

// What the request changes in what was joined before.
Status apply(const JoinRequest& request, JoinFile& join) {
  if (!request.name.empty()) join.display_name = request.name;
  if (!request.listen.empty()) {
    ATOLL_ASSIGN_OR_RETURN(join.bind, parse_address(request.listen));
    ATOLL_RETURN_IF_ERROR(check_free(join.bind));
  }
  if (!request.advertise.empty()) {
    if (!is_host(request.advertise)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("--advertise '{}' is no host; write its name or its address alone, for instance "
                               "node.example.org or 203.0.113.7",
                               printable(request.advertise, 64))};
    }
    join.advertised_host = request.advertise;
  }
  if (request.local_ranks) join.local_ranks = *request.local_ranks;
  if (request.threads) join.threads = *request.threads;
  if (request.micro_batch) join.micro_batch = *request.micro_batch;
  if (!request.region.empty()) join.region = request.region;
  if (!request.device.empty()) {
    ATOLL_ASSIGN_OR_RETURN(join.device, parse_device_choice(request.device));
  }
  if (!request.precision.empty()) {
    ATOLL_ASSIGN_OR_RETURN(join.precision, parse_precision_choice(request.precision));
  }
  if (!request.gpus.empty()) {
    ATOLL_ASSIGN_OR_RETURN(const GpuList gpus, parse_gpu_list(request.gpus));
    join.gpus = gpus.text();
  }
  if (join.display_name.size() <= 64) return ok_status();
  return Error{ErrorCode::kInvalidArgument, "--name is longer than 64 bytes"};
}

// How an island computes: what may fail on this machine.
void take_choices(const JoinFile& from, JoinFile& join) {
  join.local_ranks = from.local_ranks;
  join.threads = from.threads;
  join.micro_batch = from.micro_batch;
  join.device = from.device;
  join.precision = from.precision;
  join.gpus = from.gpus;
}

// What another run left here is of that run: it is kept under its name, and found there when this home joins it again.
Status change_run(const IslandHome& home, const std::string& from, const std::string& to) {
  const auto move = [](const std::filesystem::path& old, const std::filesystem::path& now) -> Status {
    std::error_code failed;
    if (!std::filesystem::exists(old, failed)) return ok_status();
    std::filesystem::remove_all(now, failed);
    const Status moved = rename_and_flush(old, now);
    if (moved.ok()) return ok_status();
    return Error{ErrorCode::kIo, fmt::format("cannot move {} to {}: {}; move it by hand, then join again", old.string(),
                                             now.string(), moved.error().message)};
  };
  if (from == to) return ok_status();
  ATOLL_RETURN_IF_ERROR(move(home.checkpoint(), home.checkpoint_of(from)));
  return move(home.checkpoint_of(to), home.checkpoint());
}

Result<JoinOutcome> enrol_with(const JoinRequest& request, const IslandHome& home, const AbortSignal* interrupt,
                               const std::function<Status(const Invite&)>& consent, const JoinObserver& observer,
                               const std::string& run_before) {
  const Invite& invite = *request.invite;
  JoinFile join;
  join.run_id = invite.run_id;
  join.run_name = invite.run_name;
  join.display_name = host_name();
  ATOLL_RETURN_IF_ERROR(apply(request, join));
  ATOLL_RETURN_IF_ERROR(consent(invite));
  // The disk first: a use of the invite is not to be lost because a directory cannot be made.
  ATOLL_RETURN_IF_ERROR(make_directories(home.directory, FileMode::kPrivate));
  observer(JoinStage::kKey, StageStatus::kRunning);
  // Kept until the membership is: asked again after an answer that was lost, the hub knows this island by its key.
  ATOLL_ASSIGN_OR_RETURN(const KeyAndRequest key, join_key(home.join_key_file(), invite.id));
  observer(JoinStage::kKey, StageStatus::kDone);
  observer(JoinStage::kEnrol, StageStatus::kRunning);
  const Result<Enrolment> enrolment = enrol(invite, key, join.display_name, Deadline::after(kEnrolTime), interrupt);
  if (!enrolment.ok()) {
    if (enrolment.error().code == ErrorCode::kConflict) forget_join_key(home.join_key_file());  // the hub said so
    return enrolment.error();
  }
  join.hub_addresses = enrolment->hub;
  ATOLL_RETURN_IF_ERROR(change_run(home, run_before, invite.run_id));
  ATOLL_RETURN_IF_ERROR(save_identity(home.identity(), enrolment->identity));
  ATOLL_RETURN_IF_ERROR(save_join_file(home.join_file(), join));
  forget_join_key(home.join_key_file());
  std::error_code ignored;
  std::filesystem::remove(home.left_file(), ignored);  // of a membership whose key is gone
  observer(JoinStage::kEnrol, StageStatus::kDone);
  JoinFile without_it = join;
  take_choices(JoinFile(), without_it);
  return JoinOutcome{
      join, fmt::format("joined run {} as {} ({})", join.run_name, join.display_name, enrolment->identity.name.value),
      std::move(without_it)};
}

Error belongs_to(const IslandHome& home, const JoinFile& before, const Invite& invite) {
  return {
      ErrorCode::kInviteOtherRun,
      fmt::format("{} belongs to run {} already, the invite is for run {}; to leave {} for it say the same with --yes "
                  "(its model stays in {}), or join from another directory with --home DIR",
                  home.directory.string(), before.run_name, invite.run_name, before.run_name,
                  home.checkpoint_of(before.run_id).string())};
}

// The membership that there is, or the one that was left.
Result<JoinFile> membership_of(const IslandHome& home) {
  auto join = load_join_file(home.join_file());
  if (join.ok() || join.error().code != ErrorCode::kNotJoined) return join;
  auto left = load_join_file(home.left_file());
  return left.ok() ? left : join;
}

// That the hub says so: one that cannot be asked has removed nobody.
bool was_removed(const JoinFile& join, const IslandHome& home, const AbortSignal* interrupt) {
  const Result<Identity> identity = load_identity(home.identity());
  if (!identity.ok() || identity->run != join.run_id) return false;
  const Result<bool> member = is_member(*identity, join.hub_addresses, Deadline::after(kRunAskTime), interrupt);
  return member.ok() && !*member;
}

}  // namespace

std::optional<JoinFile> other_run(const IslandHome& home, const std::optional<Invite>& invite) {
  auto joined = load_join_file(home.join_file());
  if (!joined.ok() || !invite || joined->run_id == invite->run_id) return std::nullopt;
  return std::move(*joined);
}

bool has_trained_in_run_of(const JoinRequest& request, const IslandHome& home) {
  const auto before = membership_of(home);
  const bool same = before.ok() && (!request.invite || request.invite->run_id == before->run_id);
  return same && !kept_states(home.checkpoint()).empty();
}

std::optional<DeviceChoice> device_of(const JoinRequest& request) {
  const auto device = parse_device_choice(request.device);
  if (request.gpus == "none" && (!device.ok() || *device == DeviceChoice::kAuto)) return DeviceChoice::kProcessor;
  return device.ok() ? std::optional(*device) : std::nullopt;
}

Result<JoinOutcome> join_run(const JoinRequest& request, const IslandHome& home, const AbortSignal* interrupt,
                             const std::function<Status(const Invite&)>& consent, const JoinObserver& observer) {
  const JoinObserver tell = observer ? observer : JoinObserver([](JoinStage, StageStatus) {});
  auto before = membership_of(home);
  if (!before.ok() && before.error().code != ErrorCode::kNotJoined) return before.error();
  const std::optional<Invite>& invite = request.invite;
  if (!before.ok() && !invite) {
    return Error{ErrorCode::kNotJoined,
                 fmt::format("{} has joined no run; get an invite from the run's operator (who runs 'atoll "
                             "hub invite') and give it with --invite-stdin or --invite-file",
                             home.directory.string())};
  }
  std::error_code ignored;
  const bool left = !std::filesystem::exists(home.join_file(), ignored);
  const bool another = before.ok() && invite && invite->run_id != before->run_id;
  if (!before.ok()) return enrol_with(request, home, interrupt, consent, tell, invite->run_id);
  if (another && !left && !request.leave_other) return belongs_to(home, *before, *invite);
  if (another) return enrol_with(request, home, interrupt, consent, tell, before->run_id);
  ATOLL_RETURN_IF_ERROR(load_identity(home.identity()));
  if (was_removed(*before, home, interrupt)) {
    if (invite) return enrol_with(request, home, interrupt, consent, tell, before->run_id);
    tell(JoinStage::kKey, StageStatus::kDone);  // that is there: what fails is the membership
    return Error{
        ErrorCode::kPermissionDenied,
        fmt::format("this island was removed from run {} by the run's operator, or its hub was restored from a "
                    "backup of before it joined; ask them, and come back with another invite of theirs: "
                    "atoll join --invite-stdin",
                    before->run_name)};
  }
  JoinFile join = *before;
  ATOLL_RETURN_IF_ERROR(apply(request, join));
  ATOLL_RETURN_IF_ERROR(save_join_file(home.join_file(), join));
  for (const JoinStage stage : {JoinStage::kKey, JoinStage::kEnrol}) tell(stage, StageStatus::kDone);
  JoinFile without_it = join;
  take_choices(*before, without_it);
  return JoinOutcome{join,
                     fmt::format("back to run {} as {}{}", join.run_name, join.display_name,
                                 invite ? " (joined before; the invite was not used)" : ""),
                     std::move(without_it)};
}

bool forget_what_failed(const IslandHome& home, const JoinOutcome& joined) {
  if (joined.join.to_json() == joined.without_it.to_json()) return false;
  std::error_code ignored;
  const auto file = std::filesystem::exists(home.join_file(), ignored) ? home.join_file() : home.left_file();
  const auto kept = load_join_file(file);
  if (!kept.ok() || kept->to_json() != joined.join.to_json()) return false;  // somebody has changed it since
  return save_join_file(file, joined.without_it).ok();
}

}  // namespace atl
