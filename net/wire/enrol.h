// The two messages of enrolment (ALPN atoll-enrol/1): the island sends one request, the hub one response, and both
// close. A frame is a u32 length, little-endian, then so many bytes of JSON, at most kMaxEnrolBytes. No state; any
// thread.
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

// Whole frames.
Bytes encode_frame(const EnrolRequest& request);
Bytes encode_frame(const EnrolResponse& response);

// The length of the JSON that follows this header (kEnrolHeaderBytes); kProtocol when it is 0 or too long.
Result<std::size_t> enrol_body_bytes(ByteView header);
// kProtocol, or kVersionUnsupported when the request is of another version.
Result<EnrolRequest> decode_enrol_request(ByteView body);
Result<EnrolResponse> decode_enrol_response(ByteView body);

}  // namespace atl
