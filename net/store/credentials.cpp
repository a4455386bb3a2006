#include "net/store/credentials.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "net/base/file.h"

namespace atl {
namespace {

constexpr std::size_t kMaxFileBytes = 256u << 10;
constexpr std::size_t kMaxValueBytes = 8u << 10;  // a session's token has some hundred bytes
constexpr std::size_t kLeastSecret = 4;           // what is shorter is no secret, and would be found in any text

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string() : text;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Whoever may read it could write to the bucket; whoever may write it could send the states elsewhere.
Status belongs_to_owner_alone(const std::filesystem::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return errno_error("read the store's credentials in", file);
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("{} belongs to another user; credentials must be the owner's own", file.string())};
  }
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("others than its owner may use {}, which holds credentials; take that away (chmod 600)",
                             file.string())};
  }
  return ok_status();
}

// What an HTTP header may carry.
bool is_one_word(std::string_view value) {
  return value.size() <= kMaxValueBytes && std::ranges::all_of(value, [](char c) { return c > ' ' && c < 0x7f; });
}

Status check(const StoreCredentials& credentials) {
  for (const std::string* value : {&credentials.key_id, &credentials.secret, &credentials.session_token}) {
    if (is_one_word(*value)) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the store's credentials in {} have a value with blanks or other signs in it; write it "
                             "there as the store gave it",
                             credentials.origin)};
  }
  if (credentials.key_id.empty() == credentials.secret.empty()) return ok_status();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the store's credentials in {} are half there: both the access key's id and its secret are "
                           "needed",
                           credentials.origin)};
}

Result<StoreCredentials> read_credentials(const std::filesystem::path& file) {
  ATOLL_RETURN_IF_ERROR(belongs_to_owner_alone(file));
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(file, kMaxFileBytes));
  const std::string chosen = environment("AWS_PROFILE");
  const std::string wanted = chosen.empty() ? "default" : chosen;
  StoreCredentials credentials;
  credentials.origin = file.string();
  bool here = false;
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with('[') && line.ends_with(']')) here = trimmed(line.substr(1, line.size() - 2)) == wanted;
    const auto equals = line.find('=');
    if (!here || equals == std::string_view::npos || line.starts_with('#') || line.starts_with(';')) continue;
    const std::string_view name = trimmed(line.substr(0, equals)), value = trimmed(line.substr(equals + 1));
    if (name == "aws_access_key_id") credentials.key_id = value;
    if (name == "aws_secret_access_key") credentials.secret = value;
    if (name == "aws_session_token") credentials.session_token = value;
  }
  ATOLL_RETURN_IF_ERROR(check(credentials));
  if (!credentials.anonymous()) return credentials;
  return Error{ErrorCode::kNotFound,
               fmt::format("{} has no section [{}] with aws_access_key_id and aws_secret_access_key; write them there, "
                           "or name another section in AWS_PROFILE",
                           file.string(), wanted)};
}

void leave_out(std::string& text, const std::string& secret) {
  if (secret.size() < kLeastSecret) return;
  for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
    text.replace(at, secret.size(), "***");
  }
}

}  // namespace

Result<StoreCredentials> load_store_credentials(const std::filesystem::path& file) {
  if (!file.empty()) return read_credentials(file);
  StoreCredentials credentials;
  credentials.key_id = environment("AWS_ACCESS_KEY_ID");
  credentials.secret = environment("AWS_SECRET_ACCESS_KEY");
  credentials.session_token = environment("AWS_SESSION_TOKEN");
  credentials.origin = "the environment";
  ATOLL_RETURN_IF_ERROR(check(credentials));
  if (!credentials.anonymous()) return credentials;
  const std::string home = environment("HOME");
  const std::filesystem::path usual = std::filesystem::path(home) / ".aws" / "credentials";
  std::error_code ignored;
  if (!home.empty() && std::filesystem::exists(usual, ignored)) return read_credentials(usual);
  return StoreCredentials{};
}

std::string without_secrets(std::string text, const StoreCredentials& credentials) {
  leave_out(text, credentials.secret);
  leave_out(text, credentials.session_token);
  return text;
}

}  // namespace atl
