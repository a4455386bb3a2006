#include "net/enrol/join_key.h"

#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/json_reader.h"

namespace atl {
namespace {

constexpr int kVersion = 1;
constexpr std::size_t kMaxFileBytes = 16 * 1024;
constexpr int kMaxDepth = 1;

// An error when there is none of this invite, or none that can be read: then a new one does.
Result<KeyAndRequest> kept_key(const std::filesystem::path& file, const std::string& invite_id) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(file, kMaxFileBytes));
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json json, parse_bounded_json(text, kMaxFileBytes, kMaxDepth));
  JsonReader reader(json);
  int version = 0;
  std::string invite, key;
  reader.field("version", version);
  reader.bounded("invite", invite, kMaxFileBytes);
  reader.bounded("key", key, kMaxFileBytes);
  ATOLL_RETURN_IF_ERROR(reader.status());
  if (version != kVersion || invite != invite_id) return Error{ErrorCode::kNotFound, "no key of this invite"};
  return signing_request_of(key);
}

}  // namespace

Result<KeyAndRequest> join_key(const std::filesystem::path& file, const std::string& invite_id) {
  if (auto kept = kept_key(file, invite_id); kept.ok()) return kept;
  KeyAndRequest made = make_signing_request();
  const nlohmann::json json = {{"version", kVersion}, {"invite", invite_id}, {"key", made.key_pem}};
  const std::string text = json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  ATOLL_RETURN_IF_ERROR(write_file_atomically(file, text, FileMode::kPrivate));
  return made;
}

void forget_join_key(const std::filesystem::path& file) {
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
}

}  // namespace atl
