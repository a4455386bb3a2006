// The messages of enrolment (ALPN atoll-enrol/1): who is to become an island sends one request, the hub one response,
// and both close. Before, with a connection of its own, it may ask which run that is: what the hub tells everybody, for
// which no secret is shown. A frame is a u32 length, little-endian, then so many bytes of JSON, at most kMaxEnrolBytes.
// No state; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/base/address.h"
#include "net/base/bytes.h"
#include "net/base/id.h"
#include "net/base/result.h"

namespace atl {

inline constexpr int kEnrolVersion = 1;
inline constexpr std::size_t kMaxEnrolBytes = 16 * 1024;
inline constexpr std::size_t kEnrolHeaderBytes = 4;
inline constexpr std::size_t kMaxDisplayName = 64;
inline constexpr std::size_t kMaxRunNeeds = 8 * 1024;

struct EnrolRequest {
  int version = kEnrolVersion;
  std::string run_id;
  std::string invite_id;
  Bytes secret;              // the invite's; sent only after the hub's pin was checked
  std::string request_pem;   // PKCS#10
  std::string display_name;  // for people; at most kMaxDisplayName bytes
};

struct EnrolGrant {
  std::string certificate_pem;
  std::string authority_pem;
  IslandId island;
  std::vector<Address> hub;  // where to find it from now on
};

using EnrolResponse = std::variant<EnrolGrant, Error>;

struct AboutRequest {  // which run is that? A hub of before answers it with kProtocol
  int version = kEnrolVersion;
  std::string run_id;  // as the invite says
};

struct RunAbout {
  std::string run_id;
  std::string name;           // these three for people
  std::string operator_name;  // empty: the hub does not say
  std::string model;          // "llama, 4 layers of 128, 257 tokens"
  std::uint64_t parameters = 0;
  std::string needs = {};  // of a machine, as JSON (RunNeeds of net/check/facts.h); empty: the hub does not say
};

using AboutResponse = std::variant<RunAbout, Error>;
using EnrolMessage = std::variant<EnrolRequest, AboutRequest>;

// Whole frames.
Bytes encode_frame(const EnrolRequest& request);
Bytes encode_frame(const EnrolResponse& response);
Bytes encode_frame(const AboutRequest& request);
Bytes encode_frame(const AboutResponse& response);

// The length of the JSON that follows this header (kEnrolHeaderBytes); kProtocol when it is 0 or too long.
Result<std::size_t> enrol_body_bytes(ByteView header);
// kProtocol, or kVersionUnsupported when the request is of another version.
Result<EnrolRequest> decode_enrol_request(ByteView body);
Result<EnrolResponse> decode_enrol_response(ByteView body);
Result<EnrolMessage> decode_enrol_message(ByteView body);  // either request, as the hub hears it
Result<AboutResponse> decode_about_response(ByteView body);

}  // namespace atl
