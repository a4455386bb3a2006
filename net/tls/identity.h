// Who this process is within a run: its key, its certificate, and the authority that both ends of a connection trust.
#pragma once

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
Status save_identity(const std::filesystem::path& directory, const Identity& identity);

}  // namespace atl
