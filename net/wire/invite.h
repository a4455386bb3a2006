// An invite: what a person pastes to join a run. Text, one form only:
//
//   "atoll1." base64url(payload) "." crc32(all before this dot, 8 lower-case hex digits)
//   payload = u8 addresses (1..8), each a string "host:port"; string run id; string run name; 32 bytes pin; string
//   invite id;
//             u8 secret bytes (16..64), the secret; u64 expiry (seconds since 1970).   A string: u16 length, then
//             UTF-8.
//
// also as a link, "atoll:join?i=" and that text. Everything here is offline. No state; any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/address.h"
#include "net/base/bytes.h"
#include "net/base/result.h"
#include "net/base/sha256.h"

namespace atl {

inline constexpr std::size_t kMaxInviteText = 4096;
inline constexpr std::size_t kMinInviteSecretBytes = 16;
inline constexpr std::string_view kInviteLinkPrefix = "atoll:join?i=";

struct Invite {
  std::vector<Address> hub;  // tried in turn
  std::string run_id;
  std::string run_name;  // for people; at most 64 bytes
  Digest authority_pin{};
  std::string id;  // public: may stand in logs
  Bytes secret;    // never does
  std::chrono::sys_seconds expires;
};

// kInvalidArgument when a field is out of its bounds.
Result<std::string> encode_invite(const Invite& invite);
std::string invite_link(std::string_view invite_text);

// Text or link, line breaks and spaces in it ignored. kInviteMalformed (the message says which part),
// kVersionUnsupported, or, when it expired before `now`, kInviteExpired.
Result<Invite> decode_invite(std::string_view text, std::chrono::sys_seconds now);

// Whether a command line's argument is to be taken for an invite or a link with one, as decode_invite reads them: with
// spaces anywhere. Anybody who may list this machine's processes can read it until it is overwritten.
bool may_be_invite(std::string_view argument);

// For logs: everything but the secret.
std::string describe(const Invite& invite);

}  // namespace atl
