#include "net/wire/json_archive.h"

#include "net/base/bytes.h"
#include "net/base/encoding.h"

namespace atl {

// {"count": 10, "bits": base64url}: flag i is bit i % 8 of byte i / 8, what is left of the last byte is zero.
void JsonWriter::flags(const char* name, const std::vector<bool>& flags) {
  if (flags.empty()) return;
  Bytes bits((flags.size() + 7) / 8);
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i]) bits[i / 8] |= std::byte{1} << (i % 8);
  }
  object[name] = {{"count", flags.size()}, {"bits", base64url_encode(bits)}};
}

void JsonWriter::figures(const char* name, const std::vector<double>& figures) {
  if (!figures.empty()) object[name] = figures;
}

}  // namespace atl
