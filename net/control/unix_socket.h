// Unix stream sockets by path, of any length: the address holds 107 bytes, so the directory is opened and named by its
// descriptor. For peers of the same user on the same machine. Any thread.
#pragma once

#include <filesystem>

#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/base/unique_fd.h"

namespace atl {

// Who may connect beside root: the user of this process, or whoever is in the socket file's group as well.
enum class SocketAccess { kOwner, kGroup };

// A listening socket file: 0600 (0660 for a group) from its first moment, in a directory that is made 0700 if it is not
// there. Removed with its owner, unless another has taken its place.
class UnixListener {
 public:
  // A stale socket is replaced, and that of a process which was killed and is not gone yet (is_process_alive());
  // kPermissionDenied when a living process serves it.
  static Result<UnixListener> listen(const std::filesystem::path& path, SocketAccess access = SocketAccess::kOwner);
  UnixListener(UnixListener&&) noexcept = default;
  UnixListener& operator=(UnixListener&&) = delete;
  ~UnixListener();

  int fd() const { return socket_.get(); }
  // Non-blocking. Refuses (closes) peers of another user, except root and, for a group, those that the file's mode let
  // in; empty when nobody is waiting.
  UniqueFd accept();

 private:
  UnixListener(UniqueFd directory, UniqueFd socket, std::string name, ino_t inode, SocketAccess access)
      : directory_(std::move(directory)),
        socket_(std::move(socket)),
        name_(std::move(name)),
        inode_(inode),
        access_(access) {}
  UniqueFd directory_;
  UniqueFd socket_;
  std::string name_;
  ino_t inode_;
  SocketAccess access_;
};

// Non-blocking once connected. kNotRunning when nothing listens there.
Result<UniqueFd> connect_unix(const std::filesystem::path& path, Deadline deadline);

}  // namespace atl
