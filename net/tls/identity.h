// Who this process is within a run: its key, its certificate, and the authority that both ends of a connection trust.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "net/base/id.h"
#include "net/base/result.h"

namespace atl {

// The hub's certificate carries this name; an island's carries its id.
inline constexpr const char* kHubName = "atoll-hub";

struct Identity {
  IslandId name;        // the certificate's common name and only DNS subject alternative name
  std::string run;      // run id, the authority's organisation name
  std::string key_pem;  // never leaves the machine, file mode 0600
  std::string certificate_pem;
  std::string authority_pem;  // the run's certificate authority
};

// Files key.pem (0600), certificate.pem and authority.pem in `directory` (made with 0700).
// kNotJoined when there are none; kCorrupt when key and certificate do not belong together.
Result<Identity> load_identity(const std::filesystem::path& directory);
// The same identity with a newer certificate of it. kCertificate when that is not for its key and name, not from its
// authority, or does not last longer than the one it has.
Result<Identity> with_certificate(const Identity& identity, const std::string& certificate_pem);
// A third of its certificate's life has passed: time to ask for a new one, while there is much left to try again in.
bool is_due_for_renewal(const Identity& identity, std::chrono::system_clock::time_point now);
Status save_identity(const std::filesystem::path& directory, const Identity& identity);

}  // namespace atl
