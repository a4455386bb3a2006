#include "net/enrol/certificate_keeper.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include "net/base/backoff.h"
#include "net/enrol/certificate_renewal.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kRequestTime{20};
constexpr std::chrono::seconds kFirstRetry{30};

}  // namespace

CertificateKeeper::CertificateKeeper(Identity identity, Options options)
    : identity_(std::move(identity)), options_(std::move(options)), thread_([this] { run(); }) {}

CertificateKeeper::~CertificateKeeper() { stop_.raise("the island ends"); }

void CertificateKeeper::run() {
  Backoff retry(kFirstRetry, options_.period);
  while (!stop_.raised()) {
    const Status status = renew_if_due();
    if (!status.ok() && !stop_.raised()) spdlog::warn("certificate error=\"{}\"", status.error().message);
    if (status.ok()) retry.reset();
    const auto pause = status.ok() ? options_.period : retry.next();
    pollfd wake{stop_.fd(), POLLIN, 0};
    ::poll(&wake, 1, static_cast<int>(pause.count()));
  }
}

Status CertificateKeeper::renew_if_due() {
  const auto now = std::chrono::system_clock::now();
  if (!is_due_for_renewal(identity_, now)) return ok_status();
  if (is_not_yet_valid(identity_, now)) {
    spdlog::warn("certificate=\"not valid yet: this machine's clock is behind, or its hub's was ahead\"");
  }
  ATOLL_ASSIGN_OR_RETURN(identity_, renew_certificate(identity_, options_.hub, Deadline::after(kRequestTime), stop_));
  identity_.renewed->replace(identity_.certificate_pem);
  spdlog::info("certificate renewed");
  return save_identity(options_.directory, identity_);
}

}  // namespace atl
