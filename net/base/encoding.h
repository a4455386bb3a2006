// Text encodings and checksums of short byte strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/base/bytes.h"
#include "net/base/result.h"

namespace atl {

std::string hex_encode(ByteView bytes);  // lower case
Result<Bytes> hex_decode(std::string_view text);
std::string base64url_encode(ByteView bytes);  // RFC 4648 section 5, without padding
Result<Bytes> base64url_decode(std::string_view text);
std::uint32_t crc32(ByteView bytes);  // IEEE 802.3, as zlib's crc32

}  // namespace atl
