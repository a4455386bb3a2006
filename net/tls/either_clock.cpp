#include "net/tls/either_clock.h"

#include <openssl/x509_vfy.h>

#include <ctime>

namespace atl {
namespace {

// Goes on while the machine sleeps.
std::time_t seconds_since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

const std::time_t boot = std::time(nullptr) - seconds_since_boot();  // as the process began

}  // namespace

int in_time_by_either_clock(int accepted, X509_STORE_CTX* verification) {
  const int error = X509_STORE_CTX_get_error(verification);
  if (accepted == 1 || (error != X509_V_ERR_CERT_NOT_YET_VALID && error != X509_V_ERR_CERT_HAS_EXPIRED)) {
    return accepted;
  }
  const X509* certificate = X509_STORE_CTX_get_current_cert(verification);
  std::time_t now = boot + seconds_since_boot();
  if (X509_cmp_time(X509_get0_notBefore(certificate), &now) >= 0 ||
      X509_cmp_time(X509_get0_notAfter(certificate), &now) <= 0) {
    return accepted;
  }
  X509_STORE_CTX_set_error(verification, X509_V_OK);
  return 1;
}

}  // namespace atl
