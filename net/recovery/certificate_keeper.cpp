#include "net/recovery/certificate_keeper.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include "net/recovery/certificate_renewal.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kRequestTime{20};

}  // namespace

CertificateKeeper::CertificateKeeper(Identity identity, Options options)
    : identity_(std::move(identity)), options_(std::move(options)), thread_([this] { run(); }) {}

CertificateKeeper::~CertificateKeeper() { stop_.raise("the island ends"); }

void CertificateKeeper::run() {
  while (!stop_.raised()) {
    const Status status = renew_if_due();
    if (!status.ok() && !stop_.raised()) spdlog::warn("certificate error=\"{}\"", status.error().message);
    pollfd wake{stop_.fd(), POLLIN, 0};
    ::poll(&wake, 1, static_cast<int>(options_.period.count()));
  }
}

Status CertificateKeeper::renew_if_due() {
  if (!is_due_for_renewal(identity_, std::chrono::system_clock::now())) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(identity_, renew_certificate(identity_, options_.hub, Deadline::after(kRequestTime), stop_));
  identity_.renewed->replace(identity_.certificate_pem);
  spdlog::info("certificate renewed");
  return save_identity(options_.directory, identity_);
}

}  // namespace atl
