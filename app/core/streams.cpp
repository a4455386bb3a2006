#include "app/core/streams.h"

namespace atl {

OpenStream open_stream(const NodeAddress& address) {
  if (const auto* local = std::get_if<LocalNode>(&address)) return open_socket(local->home.socket);
  if (const auto* ssh = std::get_if<SshNode>(&address)) return open_ssh(ssh->url);
  const auto& recorded = std::get<RecordedNode>(address);
  return open_recording(recorded.file, recorded.speed);
}

}  // namespace atl
