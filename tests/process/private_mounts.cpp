#include "tests/process/private_mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <QtCore/QtGlobal>
#include <array>
#include <cerrno>
#include <cstring>

#include "net/base/unique_fd.h"

namespace atl::test {

std::optional<std::string> enter_private_mounts() {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return std::string("mounts need root: ") + std::strerror(errno);
  }
  return std::nullopt;
}

SmallDisk::SmallDisk(std::filesystem::path directory, std::uint64_t bytes) : directory_(std::move(directory)) {
  const std::string size = "mode=0700,size=" + std::to_string(bytes);
  if (::mount("tmpfs", directory_.c_str(), "tmpfs", MS_NODEV | MS_NOSUID, size.c_str()) != 0) {
    qFatal("cannot mount %s: %s", directory_.c_str(), std::strerror(errno));
  }
}

SmallDisk::~SmallDisk() { ::umount2(directory_.c_str(), MNT_DETACH); }

void SmallDisk::set_read_only(bool read_only) const {
  unsigned long flags = MS_REMOUNT | MS_NODEV | MS_NOSUID;
  if (read_only) flags |= MS_RDONLY;
  if (::mount("none", directory_.c_str(), nullptr, flags, nullptr) != 0) {
    qFatal("cannot remount %s: %s", directory_.c_str(), std::strerror(errno));
  }
}

void SmallDisk::fill() const {
  const UniqueFd file(::open(filler().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::array<char, 4096> page{};
  while (::write(file.get(), page.data(), page.size()) > 0) {
  }
  if (errno != ENOSPC) qFatal("%s: %s", filler().c_str(), std::strerror(errno));
}

void SmallDisk::free_space() const { ::unlink(filler().c_str()); }

}  // namespace atl::test
