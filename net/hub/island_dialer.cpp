#include "net/hub/island_dialer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>

#include "net/base/network_address.h"
#include "net/transport/socket.h"
#include "net/transport/tls_connection.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kPollPeriod{1};
constexpr std::size_t kMostOfName = 2;  // literal addresses of a name that are tried

}  // namespace

IslandDialer::IslandDialer(TlsContext context, OnDialled on_dialled)
    : context_(std::move(context)), on_dialled_(std::move(on_dialled)) {}

Result<std::unique_ptr<IslandDialer>> IslandDialer::start(const Identity& hub, OnDialled on_dialled) {
  ATOLL_ASSIGN_OR_RETURN(TlsContext context, TlsContext::client(hub, kAlpnRing));
  std::unique_ptr<IslandDialer> dialer(new IslandDialer(std::move(context), std::move(on_dialled)));
  try {
    for (std::size_t i = 0; i < kAtOnce; ++i) dialer->threads_.emplace_back([d = dialer.get()] { d->run(); });
  } catch (const std::system_error& error) {
    return Error{ErrorCode::kIo, std::string("cannot start a thread that dials islands: ") + error.what()};
  }
  return dialer;
}

IslandDialer::~IslandDialer() {
  stop_.raise("the hub stops");
  waiting_.close();
}

void IslandDialer::dial(const IslandId& island, const Address& address) {
  if (!waiting_.push({island, address})) spdlog::debug("dial island={} dropped=\"too many wait\"", island.value);
}

void IslandDialer::prove(const IslandId& island, const Address& named, const std::string& host, OnProven on_proven) {
  if (waiting_.push({island, named, host, on_proven})) return;
  on_proven(Error{ErrorCode::kTimeout, "too many addresses wait to be tried"});
}

bool IslandDialer::answers(const IslandId& island, const Address& address) {
  for (int attempt = 0; attempt < kTries && !stop_.raised(); ++attempt) {
    const auto connection = TlsConnection::connect(address, context_, island, Deadline::after(kDialTimeout), &stop_);
    if (connection.ok()) return true;
    if (const auto held_back = lines_.pass(island.value)) {
      spdlog::info("dial island={} error=\"{}\" held_back={}", island.value, connection.error().message, *held_back);
    }
  }
  return false;
}

Result<Address> IslandDialer::find(const Target& target) {
  const auto from = NetworkAddress::parse(target.named_from);
  if (!from) return Error{ErrorCode::kInvalidArgument, "it is not known where the island comes from"};
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> literals,
                         addresses_of(target.address.host, Deadline::after(kDialTimeout), &stop_, "look-up"));
  std::vector<std::string> allowed;
  for (const std::string& literal : literals) {
    const auto address = NetworkAddress::parse(literal);
    if (address && from->may_name(*address)) allowed.push_back(literal);
  }
  // What most members can dial comes first.
  std::ranges::stable_partition(allowed,
                                [](const std::string& literal) { return literal.find(':') == std::string::npos; });
  if (allowed.size() > kMostOfName) allowed.resize(kMostOfName);
  for (const std::string& literal : allowed) {
    const Address address{literal, target.address.port};
    if (answers(target.island, address)) return address;
  }
  if (allowed.empty() && !literals.empty()) {
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("an island that comes from {} may not have others connect to {}", target.named_from,
                             literals.front())};
  }
  return Error{ErrorCode::kUnreachable, "no such island answers there"};
}

void IslandDialer::run() {
  while (!stop_.raised()) {
    const std::optional<Target> target = waiting_.pop(Deadline::after(kPollPeriod));
    if (!target) continue;
    if (target->on_proven) {
      Result<Address> found = find(*target);
      if (!stop_.raised()) target->on_proven(std::move(found));
      continue;
    }
    const bool answered = answers(target->island, target->address);
    if (!stop_.raised()) on_dialled_(target->island, target->address, answered);
  }
}

}  // namespace atl
