// The control socket: JSON-RPC 2.0, one object a line (at most 1 MiB), over a Unix socket (0600, peer credentials
// checked). Served by the trainer and by the hub; read by the command line, the demo and the desktop app.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "net/base/result.h"
#include "net/control/unix_socket.h"

namespace atl {

inline constexpr int kControlVersion = 1;

// Answers calls. On the server's thread; must not block: long work is started and reported by events, or is a slow
// method.
class ControlService {
 public:
  virtual ~ControlService() = default;
  // Slow methods are called on a thread of their own, one after the other, while the server goes on answering.
  virtual bool is_slow(std::string_view) const { return false; }
  // kInvalidArgument becomes -32602, kNotFound -32601, everything else -32000 with data {code, message}.
  virtual Result<nlohmann::json> call(std::string_view method, const nlohmann::json& params) = 0;
};

class ControlServer {
 public:
  // Replaces a stale socket; kPermissionDenied or kIo when another process serves it. `service` outlives the server.
  // Answers `hello` {version, program} itself, and `events.subscribe {since}` with the kept events, then new ones as
  // they come.
  static Result<std::unique_ptr<ControlServer>> start(const std::filesystem::path& socket, std::string program,
                                                      ControlService& service,
                                                      SocketAccess access = SocketAccess::kOwner);
  ~ControlServer();

  // Any thread. Adds seq and time; the last 1024 events are kept; a subscriber that does not read is dropped.
  void publish(std::string_view event, const nlohmann::json& data);

 private:
  class Impl;
  explicit ControlServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
