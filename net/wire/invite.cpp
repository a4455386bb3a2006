#include "net/wire/invite.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "net/base/encoding.h"
#include "net/base/printable.h"

namespace atl {
namespace {

constexpr std::string_view kName = "atoll";
constexpr std::string_view kVersion = "1";
constexpr std::size_t kMaxAddresses = 8;
constexpr std::size_t kMaxAddressText = 262;
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxId = 32;
constexpr std::size_t kMaxSecretBytes = 64;
constexpr std::uint64_t kMaxExpiry = 253'402'300'799;  // the end of the year 9999

Error malformed(std::string_view what) {
  return Error{ErrorCode::kInviteMalformed,
               fmt::format("this is not a whole invite: {}; copy it again from the first to the last character", what)};
}

bool is_plain(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-'; });
}

// The first rule that the invite breaks; empty when none.
std::string_view broken_rule(const Invite& invite) {
  if (invite.hub.empty() || invite.hub.size() > kMaxAddresses) return "it carries no, or too many, hub addresses";
  for (const Address& address : invite.hub) {
    if (address.host.empty() || address.port == 0 || to_string(address).size() > kMaxAddressText) {
      return "a hub address in it is no HOST:PORT";
    }
  }
  if (!is_plain(invite.run_id) || invite.run_id.size() > kMaxName) return "its run id is wrong";
  if (invite.run_name.size() > kMaxName || !is_printable(invite.run_name)) return "its run name is wrong";
  if (!is_plain(invite.id) || invite.id.size() > kMaxId) return "its id is wrong";
  if (invite.secret.size() < kMinInviteSecretBytes || invite.secret.size() > kMaxSecretBytes) {
    return "its secret has a wrong length";
  }
  const auto expiry = invite.expires.time_since_epoch().count();
  if (expiry < 0 || static_cast<std::uint64_t>(expiry) > kMaxExpiry) return "its expiry is wrong";
  return {};
}

// By way of time_t: the system clock counts nanoseconds, which overflow in the year 2262.
std::tm utc(std::chrono::sys_seconds time) {
  return fmt::gmtime(static_cast<std::time_t>(time.time_since_epoch().count()));
}

// Mail and chat programs break long lines.
std::string without_spaces(std::string_view text) {
  std::string joined;
  std::ranges::copy_if(text, std::back_inserter(joined), [](char c) { return c != ' ' && (c < '\t' || c > '\r'); });
  return joined;
}

std::string checksum(std::string_view text) { return fmt::format("{:08x}", crc32(as_bytes(text))); }

Result<Invite> read_payload(ByteView payload) {
  ByteReader reader(payload);
  Invite invite;
  const std::size_t addresses = reader.get<std::uint8_t>();
  if (addresses > kMaxAddresses) return malformed("it carries too many hub addresses");
  for (std::size_t i = 0; i < addresses && reader.ok(); ++i) {
    auto address = parse_address(reader.get_string(kMaxAddressText));
    if (!address.ok()) return malformed("a hub address in it is no HOST:PORT");
    invite.hub.push_back(std::move(address).value());
  }
  invite.run_id = reader.get_string(kMaxName);
  invite.run_name = reader.get_string(kMaxName);
  const ByteView pin = reader.get_bytes(invite.authority_pin.size());
  std::ranges::copy(pin, invite.authority_pin.begin());
  invite.id = reader.get_string(kMaxId);
  const ByteView secret = reader.get_bytes(reader.get<std::uint8_t>());
  invite.secret.assign(secret.begin(), secret.end());
  const auto expiry = std::min(reader.get<std::uint64_t>(), kMaxExpiry + 1);
  invite.expires = std::chrono::sys_seconds(std::chrono::seconds(expiry));
  if (!reader.ok() || !reader.at_end()) return malformed("its fields do not have the lengths that they should");
  if (const auto broken = broken_rule(invite); !broken.empty()) return malformed(broken);
  return invite;
}

}  // namespace

Result<std::string> encode_invite(const Invite& invite) {
  if (const auto broken = broken_rule(invite); !broken.empty()) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("cannot make this invite: {}", broken)};
  }
  ByteWriter writer;
  writer.put(static_cast<std::uint8_t>(invite.hub.size()));
  for (const Address& address : invite.hub) writer.put_string(to_string(address));
  writer.put_string(invite.run_id);
  writer.put_string(invite.run_name);
  writer.put_bytes(invite.authority_pin);
  writer.put_string(invite.id);
  writer.put(static_cast<std::uint8_t>(invite.secret.size()));
  writer.put_bytes(invite.secret);
  writer.put(static_cast<std::uint64_t>(invite.expires.time_since_epoch().count()));
  const std::string body = fmt::format("{}{}.{}", kName, kVersion, base64url_encode(writer.bytes()));
  return fmt::format("{}.{}", body, checksum(body));
}

std::string invite_link(std::string_view invite_text) { return fmt::format("{}{}", kInviteLinkPrefix, invite_text); }

Result<Invite> decode_invite(std::string_view raw, std::chrono::sys_seconds now) {
  if (raw.size() > kMaxInviteText) return malformed("it is far too long");
  const std::string joined = without_spaces(raw);
  std::string_view text = joined;
  if (text.starts_with(kInviteLinkPrefix)) text.remove_prefix(kInviteLinkPrefix.size());

  const auto first_dot = text.find('.');
  const std::string_view head = text.substr(0, first_dot);
  const bool numbered = head.size() > kName.size() && head.starts_with(kName) &&
                        head.find_first_not_of("0123456789", kName.size()) == std::string_view::npos;
  if (!numbered) return malformed("it does not begin with 'atoll1.'");
  if (head.substr(kName.size()) != kVersion) {
    return Error{
        ErrorCode::kVersionUnsupported,
        fmt::format("this invite has version {}, and this Atoll knows version {}; install the newest Atoll, or ask "
                    "for another invite",
                    head.substr(kName.size()), kVersion)};
  }
  const auto last_dot = text.rfind('.');
  if (first_dot == std::string_view::npos || last_dot == first_dot) return malformed("its end is missing");
  if (text.substr(last_dot + 1) != checksum(text.substr(0, last_dot))) {
    return malformed("its checksum does not fit, so a part is missing or was changed");
  }
  const auto payload = base64url_decode(text.substr(first_dot + 1, last_dot - first_dot - 1));
  if (!payload.ok()) return malformed("its middle part is not base64url");
  ATOLL_ASSIGN_OR_RETURN(Invite invite, read_payload(*payload));
  if (invite.expires <= now) {
    return Error{
        ErrorCode::kInviteExpired,
        fmt::format("this invite expired at {:%Y-%m-%d %H:%M} UTC; ask for a new one (if that is in the future, this "
                    "machine's clock is wrong)",
                    utc(invite.expires))};
  }
  return invite;
}

bool may_be_invite(std::string_view argument) {
  const std::string text = without_spaces(argument);
  return text.starts_with("atoll1.") || text.starts_with("atoll:");
}

std::string describe(const Invite& invite) {
  std::string hubs;
  for (const Address& address : invite.hub) hubs += fmt::format("{}{}", hubs.empty() ? "" : ",", to_string(address));
  return fmt::format("invite={} run={} hub={} expires={:%Y-%m-%dT%H:%M:%SZ}", invite.id, invite.run_id, hubs,
                     utc(invite.expires));
}

}  // namespace atl
