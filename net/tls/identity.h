// Who this process is within a run: its key, its certificate, and the authority that both ends of a connection trust.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "net/base/id.h"
#include "net/base/mutex.h"
#include "net/base/result.h"

namespace atl {

// The hub's certificate carries this name; an island's carries its id.
inline constexpr const char* kHubName = "atoll-hub";
inline constexpr std::chrono::hours kIslandCertificateLifetime{24 * 90};  // renewed long before its end

// A certificate that came after the one that an Identity was loaded with; shared by its copies. Thread-safe.
class RenewedCertificate {
 public:
  void replace(std::string pem) {
    MutexLock lock(mutex_);
    pem_ = std::move(pem);
  }
  std::string pem() const {  // empty: none came
    MutexLock lock(mutex_);
    return pem_;
  }

 private:
  mutable Mutex mutex_;
  std::string pem_ ATOLL_GUARDED_BY(mutex_);
};

struct Identity {
  IslandId name;        // the certificate's common name and only DNS subject alternative name
  std::string run;      // run id, the authority's organisation name
  std::string key_pem;  // never leaves the machine, file mode 0600
  std::string certificate_pem;
  std::string authority_pem;  // the run's certificate authority
  // Connections show it, whichever copy's context made them.
  std::shared_ptr<RenewedCertificate> renewed = std::make_shared<RenewedCertificate>();

  std::string newest_certificate_pem() const {
    std::string pem = renewed->pem();
    return pem.empty() ? certificate_pem : pem;
  }
};

// Files key.pem (0600), certificate.pem and authority.pem in `directory` (made with 0700).
// kNotJoined when there are none; kCorrupt when key and certificate do not belong together.
Result<Identity> load_identity(const std::filesystem::path& directory);
// The same identity with a newer certificate of it. kCertificate when that is not for its key and name, not from its
// authority, or does not last longer than the one it has.
Result<Identity> with_certificate(const Identity& identity, const std::string& certificate_pem);
// A third of its certificate's life has passed: time to ask for a new one, while there is much left to try again in. Or
// it is not valid yet. `lifetime`: that its authority gives, for it may begin long before it was made.
bool is_due_for_renewal(const Identity& identity, std::chrono::system_clock::time_point now,
                        std::chrono::seconds lifetime = kIslandCertificateLifetime);
bool is_not_yet_valid(const Identity& identity, std::chrono::system_clock::time_point now);
Status save_identity(const std::filesystem::path& directory, const Identity& identity);

}  // namespace atl
