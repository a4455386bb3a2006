// Messages between island and hub, and those of the enrolment, as text from outside: whatever it is, it is refused with
// a reason, or decodes to a message that survives being sent on: encoded and decoded again it is the same.
#include <string>
#include <variant>

#include "net/wire/enrol.h"
#include "net/wire/mesh.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

template <class Message>
void check_comes_back(const Result<Message>& decoded, Result<Message> (*decode)(std::string_view)) {
  if (!decoded.ok()) return ATOLL_FUZZ_CHECK(!decoded.error().message.empty());
  const std::string once = encode(*decoded);
  const Result<Message> again = decode(once);
  ATOLL_FUZZ_CHECK(again.ok());
  ATOLL_FUZZ_CHECK(encode(*again) == once);
}

void check_enrolment(ByteView body) {
  if (const auto request = decode_enrol_request(body); request.ok()) {
    const Bytes once = encode_frame(*request);
    const auto again = decode_enrol_request(ByteView(once).subspan(kEnrolHeaderBytes));
    ATOLL_FUZZ_CHECK(again.ok() && encode_frame(*again) == once);
  }
  if (const auto response = decode_enrol_response(body); response.ok()) {
    const Bytes once = encode_frame(*response);
    const auto again = decode_enrol_response(ByteView(once).subspan(kEnrolHeaderBytes));
    ATOLL_FUZZ_CHECK(again.ok() && encode_frame(*again) == once);
  }
  if (const auto message = decode_enrol_message(body); message.ok()) {
    const Bytes once = std::visit([](const auto& m) { return encode_frame(m); }, *message);
    const auto again = decode_enrol_message(ByteView(once).subspan(kEnrolHeaderBytes));
    ATOLL_FUZZ_CHECK(again.ok() && again->index() == message->index());
    ATOLL_FUZZ_CHECK(std::visit([](const auto& m) { return encode_frame(m); }, *again) == once);
  }
  if (const auto response = decode_about_response(body); response.ok()) {
    const Bytes once = encode_frame(*response);
    const auto again = decode_about_response(ByteView(once).subspan(kEnrolHeaderBytes));
    ATOLL_FUZZ_CHECK(again.ok() && encode_frame(*again) == once);
  }
  if (body.size() < kEnrolHeaderBytes) return;
  const auto length = enrol_body_bytes(body.first(kEnrolHeaderBytes));
  ATOLL_FUZZ_CHECK(!length.ok() || (*length > 0 && *length <= kMaxEnrolBytes));
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  fuzz::Input input(data, size);
  const auto mode = input.get<std::uint8_t>() % 3;
  const std::string text = to_string(input.rest());
  if (mode == 0) fuzz::check_comes_back(decode_island_message(text), &decode_island_message);
  if (mode == 1) fuzz::check_comes_back(decode_hub_message(text), &decode_hub_message);
  if (mode == 2) fuzz::check_enrolment(input.rest());
  return 0;
}
