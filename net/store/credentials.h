// With what an owner writes to an object store: a key, its secret, perhaps a token of a session. They come from a file
// that its owner alone may read, in the form of ~/.aws/credentials, or from the environment; they go to libcurl, which
// signs with them, and nowhere else: no log, no error, no argument of a program. Any thread; reads a file.
#pragma once

#include <filesystem>
#include <string>

#include "net/base/result.h"

namespace atl {

struct StoreCredentials {
  std::string key_id, secret, session_token;  // empty: requests are not signed; the last may be
  std::string origin;                         // for people: "the environment", the file's path

  bool anonymous() const { return key_id.empty(); }
};

// `file`: where not empty, from there or not at all. Else AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// AWS_SESSION_TOKEN, else ~/.aws/credentials; none where neither is there. Of a file the section that AWS_PROFILE
// names, else [default]. kPermissionDenied when others may read the file.
Result<StoreCredentials> load_store_credentials(const std::filesystem::path& file);

// What somebody else said, with the secret and the token left out, should they stand in it.
std::string without_secrets(std::string text, const StoreCredentials& credentials);

}  // namespace atl
