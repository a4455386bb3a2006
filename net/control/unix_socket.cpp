#include "net/control/unix_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "net/base/child_process.h"
#include "net/base/file.h"

namespace atl {
namespace {

Result<UniqueFd> open_directory(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  UniqueFd directory(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return errno_error("open", parent);
  return directory;
}

Result<sockaddr_un> address_in(int directory, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", directory, name);
  if (path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("the socket name '{}' is too long", name)};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

UniqueFd new_socket() { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

int connect_once(int socket, const sockaddr_un& address) {
  return ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

// Whether somebody would answer. The kernel knows who listens; 0: a process of another PID namespace.
bool is_served(const sockaddr_un& address) {
  const UniqueFd socket = new_socket();
  if (connect_once(socket.get(), address) != 0) return false;
  ucred server{};
  socklen_t size = sizeof server;
  const bool known = ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &server, &size) == 0 && server.pid > 0;
  return !known || is_process_alive(server.pid);
}

}  // namespace

Result<UnixListener> UnixListener::listen(const std::filesystem::path& path, SocketAccess access) {
  ATOLL_RETURN_IF_ERROR(make_directories(path.has_parent_path() ? path.parent_path() : ".", FileMode::kPrivate));
  ATOLL_ASSIGN_OR_RETURN(UniqueFd directory, open_directory(path));
  // Two starting at once: whoever holds the directory's lock looks, removes and binds before the other looks.
  if (::flock(directory.get(), LOCK_EX) != 0) return errno_error("lock", path.parent_path());
  const std::string name = path.filename().string();
  ATOLL_ASSIGN_OR_RETURN(const sockaddr_un address, address_in(directory.get(), name));
  if (is_served(address)) {
    return Error{
        ErrorCode::kPermissionDenied,
        fmt::format("another process serves {} already; stop it first, or use another directory", path.string())};
  }
  ::unlinkat(directory.get(), name.c_str(), 0);
  UniqueFd socket = new_socket();
  // Linux takes the file's mode from the socket's inode, so it is private before anybody can connect.
  if (!socket || ::fchmod(socket.get(), 0600) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return errno_error("listen on", path);
  }
  // Not through the inode, of whose mode bind takes the umask's bits away.
  if (access == SocketAccess::kGroup && ::fchmodat(directory.get(), name.c_str(), 0660, 0) != 0) {
    return errno_error("open to its group", path);
  }
  struct stat info {};
  if (::fstatat(directory.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return errno_error("examine", path);
  ::flock(directory.get(), LOCK_UN);
  return UnixListener(std::move(directory), std::move(socket), name, info.st_ino, access);
}

UnixListener::~UnixListener() {
  if (!socket_) return;
  struct stat info {};
  if (::fstatat(directory_.get(), name_.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_ino == inode_) {
    ::unlinkat(directory_.get(), name_.c_str(), 0);
  }
}

UniqueFd UnixListener::accept() {
  UniqueFd peer(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!peer) return peer;
  ucred credentials{};
  socklen_t size = sizeof credentials;
  const bool known = ::getsockopt(peer.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0;
  const bool ours = credentials.uid == ::geteuid() || credentials.uid == 0 || access_ == SocketAccess::kGroup;
  if (!known || !ours) peer.reset();
  return peer;
}

Result<UniqueFd> connect_unix(const std::filesystem::path& path, Deadline deadline) {
  const Error not_running{ErrorCode::kNotRunning, fmt::format("nothing answers at {}", path.string())};
  auto directory = open_directory(path);
  if (!directory.ok()) return directory.error().code == ErrorCode::kNotFound ? not_running : directory.error();
  ATOLL_ASSIGN_OR_RETURN(const sockaddr_un address, address_in(directory->get(), path.filename().string()));
  UniqueFd socket = new_socket();
  if (!socket) return errno_error("make a socket for", path);
  for (;;) {
    const int error = connect_once(socket.get(), address);
    if (error == 0) return socket;
    if (error == ENOENT || error == ECONNREFUSED) return not_running;
    if (error != EAGAIN && error != EINTR) {
      errno = error;
      return errno_error("connect to", path);
    }
    // EAGAIN: the listener's queue is full, and nothing can be polled for.
    if (deadline.expired()) return Error{ErrorCode::kTimeout, fmt::format("{} does not accept", path.string())};
    ::poll(nullptr, 0, deadline.poll_milliseconds(20));
  }
}

}  // namespace atl
