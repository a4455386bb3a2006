#include "net/store/store_url.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/base/address.h"
#include "net/base/printable.h"

namespace atl {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr std::size_t kMaxPrefix = 512;  // of the 1,024 bytes of a key
constexpr std::size_t kMaxRegion = 64;
constexpr std::size_t kShownWrong = 128;  // of what is wrong, in an error

Error not_a(std::string_view what, std::string_view text, std::string_view wanted) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} '{}': must be {}", what, printable(text, kShownWrong), wanted)};
}

bool is_small_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_of_prefix(char c) {
  return is_small_or_digit(c) || (c >= 'A' && c <= 'Z') || std::string_view("-_./").find(c) != std::string_view::npos;
}

// A segment that is empty, "." or ".." would be another one once somebody made the path shorter.
bool has_plain_segments(std::string_view prefix) {
  while (!prefix.empty()) {
    const auto slash = std::min(prefix.find('/'), prefix.size());
    const std::string_view segment = prefix.substr(0, slash);
    if (segment.empty() || segment == "." || segment == "..") return false;
    prefix.remove_prefix(std::min(slash + 1, prefix.size()));
  }
  return true;
}

Status read_query(std::string_view query, StoreUrl& url) {
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const auto equals = std::min(pair.find('='), pair.size());
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    if (name == "endpoint") {
      ATOLL_ASSIGN_OR_RETURN(url.endpoint, normalise_store_endpoint(value));
    } else if (name == "region") {
      ATOLL_RETURN_IF_ERROR(validate_store_region(value));
      url.region = value;
    } else {
      return not_a("what stands behind the ? of a store's address,", pair, "endpoint=https://HOST or region=REGION");
    }
  }
  return ok_status();
}

}  // namespace

std::string StoreUrl::key(std::string_view name) const {
  return prefix.empty() ? std::string(name) : fmt::format("{}/{}", prefix, name);
}

StoreUrl StoreUrl::beneath(std::string_view name) const { return {bucket, key(name), endpoint, region}; }

Result<StoreUrl> parse_store_url(std::string_view text) {
  constexpr std::string_view kWanted =
      "s3://BUCKET/PREFIX, the prefix of letters, digits and - _ . with slashes between";
  if (!text.starts_with(kScheme)) return not_a("a store's address", text, kWanted);
  const auto question = std::min(text.find('?'), text.size());
  StoreUrl url;
  ATOLL_RETURN_IF_ERROR(read_query(text.substr(std::min(question + 1, text.size())), url));
  const std::string_view path = text.substr(kScheme.size(), question - kScheme.size());
  const auto slash = std::min(path.find('/'), path.size());
  std::string_view prefix = path.substr(std::min(slash + 1, path.size()));
  if (prefix.ends_with('/')) prefix.remove_suffix(1);
  ATOLL_RETURN_IF_ERROR(validate_bucket_name(path.substr(0, slash)));
  if (prefix.size() > kMaxPrefix || !std::ranges::all_of(prefix, is_of_prefix) || !has_plain_segments(prefix)) {
    return not_a("a store's address", text, kWanted);
  }
  url.bucket = path.substr(0, slash);
  url.prefix = prefix;
  return url;
}

std::string to_string(const StoreUrl& url) {
  std::string text = fmt::format("{}{}{}{}", kScheme, url.bucket, url.prefix.empty() ? "" : "/", url.prefix);
  if (!url.endpoint.empty()) text += fmt::format("?endpoint={}", url.endpoint);
  if (!url.region.empty()) text += fmt::format("{}region={}", url.endpoint.empty() ? '?' : '&', url.region);
  return text;
}

Result<std::string> normalise_store_endpoint(std::string_view text) {
  constexpr std::string_view kWanted = "https://HOST or https://HOST:PORT, without a path";
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (lower.ends_with('/')) lower.pop_back();
  std::string_view rest = lower;
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (rest.starts_with(scheme)) rest.remove_prefix(scheme.size());
  }
  if (rest.size() == lower.size()) return not_a("a store's endpoint", text, kWanted);
  const bool has_port = parse_address(rest).ok();
  if (!has_port && !is_host(rest)) return not_a("a store's endpoint", text, kWanted);
  return lower;
}

Status validate_bucket_name(std::string_view name) {
  const auto allowed = [](char c) { return is_small_or_digit(c) || c == '-' || c == '.'; };
  const bool good = name.size() >= 3 && name.size() <= 63 && std::ranges::all_of(name, allowed) &&
                    is_small_or_digit(name.front()) && is_small_or_digit(name.back()) &&
                    name.find("..") == std::string_view::npos;
  return good ? ok_status() : Status(not_a("a bucket", name, "3 to 63 small letters, digits, hyphens and dots"));
}

Status validate_store_region(std::string_view name) {
  const auto allowed = [](char c) { return is_small_or_digit(c) || c == '-'; };
  const bool good = !name.empty() && name.size() <= kMaxRegion && std::ranges::all_of(name, allowed);
  return good ? ok_status() : Status(not_a("a store's region", name, "small letters, digits and hyphens (us-east-1)"));
}

}  // namespace atl
