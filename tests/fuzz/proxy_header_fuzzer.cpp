// What comes before a connection from a proxy, or from whoever plays one. It is read as the hub reads it: never more
// than the header itself, whose end the bytes after it do not move; and what it names is an address.
#include "net/base/network_address.h"
#include "net/transport/proxy_header.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  std::size_t read = 0;
  for (std::size_t needs = kProxyFirstBytes; needs > 0;) {
    if (bytes.size() - read < needs) return 0;  // the hub waits for more
    read += needs;
    ATOLL_FUZZ_CHECK(read <= kMaxProxyHeaderBytes);
    const auto more = proxy_header_needs(bytes.first(read));
    if (!more.ok()) return 0;
    needs = *more;
  }
  ATOLL_FUZZ_CHECK(begins_proxy_header(bytes));
  const auto source = proxied_source(bytes.first(read));
  if (source.ok() && *source) ATOLL_FUZZ_CHECK(NetworkAddress::parse(**source).has_value());
  return 0;
}
