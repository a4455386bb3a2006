// What a person pastes: refused with a reason, or an invite that encodes to a text which decodes to the same. Its
// checksum would stop nearly every mutation, so each input is also tried as a payload with the right one.
#include <fmt/format.h>

#include <string>

#include "net/base/encoding.h"
#include "net/wire/invite.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

void check(std::string_view text) {
  const std::chrono::sys_seconds now{std::chrono::seconds(0)};
  const Result<Invite> invite = decode_invite(text, now);
  if (!invite.ok()) return ATOLL_FUZZ_CHECK(!invite.error().message.empty());
  ATOLL_FUZZ_CHECK(!invite->hub.empty() && invite->secret.size() >= kMinInviteSecretBytes);
  ATOLL_FUZZ_CHECK(!describe(*invite).empty());
  const Result<std::string> once = encode_invite(*invite);
  ATOLL_FUZZ_CHECK(once.ok());
  const Result<Invite> again = decode_invite(invite_link(*once), now);
  ATOLL_FUZZ_CHECK(again.ok() && encode_invite(*again).value() == *once);
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  fuzz::Input input(data, size);
  fuzz::check(to_string(input.rest()));
  const std::string head = "atoll1." + base64url_encode(input.rest());
  fuzz::check(fmt::format("{}.{:08x}", head, crc32(as_bytes(head))));
  return 0;
}
