#include "net/hub/island_dialer.h"

#include <spdlog/spdlog.h>

#include <system_error>

#include "net/transport/tls_connection.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kPollPeriod{1};

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

bool IslandDialer::answers(const Target& target) {
  for (int attempt = 0; attempt < kTries && !stop_.raised(); ++attempt) {
    const auto connection =
        TlsConnection::connect(target.address, context_, target.island, Deadline::after(kDialTimeout), &stop_);
    if (connection.ok()) return true;
    spdlog::info("dial island={} error=\"{}\"", target.island.value, connection.error().message);
  }
  return false;
}

void IslandDialer::run() {
  while (!stop_.raised()) {
    const std::optional<Target> target = waiting_.pop(Deadline::after(kPollPeriod));
    if (!target) continue;
    const bool answered = answers(*target);
    if (!stop_.raised()) on_dialled_(target->island, target->address, answered);
  }
}

}  // namespace atl
