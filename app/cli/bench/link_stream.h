// One connection of `atoll bench link`, as TCP or as TLS on top of it. One thread.
#pragma once

#include <span>
#include <variant>

#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/base/unique_fd.h"
#include "net/transport/tls_connection.h"
#include "net/wire/link_bench.h"

namespace atl {

class LinkStream {
 public:
  explicit LinkStream(UniqueFd socket) : connection_(std::move(socket)) {}
  explicit LinkStream(TlsConnection connection) : connection_(std::move(connection)) {}

  Status write_all(ByteView bytes, Deadline deadline, const AbortSignal& interrupt);
  Status read_exact(std::span<std::byte> bytes, Deadline deadline, const AbortSignal& interrupt);
  int fd() const;

 private:
  std::variant<UniqueFd, TlsConnection> connection_;
};

// Blocks for so long, then this end's report, then the other's.
Result<LinkReceiverReport> send_blocks(LinkStream& stream, std::chrono::milliseconds duration,
                                       const AbortSignal& interrupt, LinkSenderReport& sent);
Result<LinkReceiverReport> receive_blocks(LinkStream& stream, std::chrono::milliseconds duration,
                                          const AbortSignal& interrupt, LinkSenderReport& sent);

}  // namespace atl
