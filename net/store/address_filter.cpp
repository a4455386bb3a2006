#include "net/store/address_filter.h"

#include <curl/curl.h>
#include <sys/socket.h>

#include <cstdlib>

namespace atl {
namespace {

curl_socket_t open_socket(void* context, curlsocktype, curl_sockaddr* to) {
  const auto address = NetworkAddress::of(to->addr);
  if (!address || !static_cast<const AddressFilter*>(context)->allows(*address)) return CURL_SOCKET_BAD;
  return ::socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

bool has_proxy() {
  for (const char* name : {"https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

}  // namespace

AddressFilter AddressFilter::public_addresses() {
  if (has_proxy()) return {};
  return AddressFilter([](const NetworkAddress& address) { return address.is_public(); });
}

void AddressFilter::apply_to(void* easy) const {
  if (!allows_) return;
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, const_cast<AddressFilter*>(this));
}

}  // namespace atl
