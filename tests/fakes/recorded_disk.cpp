#include "tests/fakes/recorded_disk.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "net/base/mutex.h"

namespace atl::test {
namespace {

constexpr std::size_t kSector = 512;

// A file or a directory; names come and go.
using Node = std::size_t;

struct Made {  // a name for a node that is new
  Node in;
  std::string name;
  Node node;
  bool directory = false;
};
struct Linked {
  Node in;
  std::string name;
  Node node;
};
struct Unlinked {
  Node in;
  std::string name;
};
struct Renamed {
  Node from_in;
  std::string from;
  Node to_in;
  std::string to;
};
struct Written {
  Node node;
  std::uint64_t offset;
  std::string bytes;
};
struct Cut {  // ftruncate
  Node node;
  std::uint64_t size;
};
struct Flushed {
  Node node;
};
using Operation = std::variant<Made, Linked, Unlinked, Renamed, Written, Cut, Flushed>;

struct Recording {
  Mutex mutex;  // held from before something is done until it is recorded: in the order of both
  std::string root;
  bool on = false;
  std::vector<Operation> operations;
  Node nodes = 1;                                      // 0 is the root
  std::map<std::pair<Node, std::string>, Node> names;  // as they are now
  std::set<Node> directories{0};
  struct Open {
    Node node;
    std::uint64_t at = 0;
    bool appends = false;
  };
  std::map<int, Open> open;
};

Recording& recording() {
  static Recording one;
  return one;
}

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

// Where a path below the root leads: the directory and the name in it.
struct Place {
  Node in;
  std::string name;
};

std::string absolute(int directory, const char* path) {
  if (path[0] == '/') return path;
  std::string base;
  if (directory == AT_FDCWD) {
    base = std::filesystem::current_path();
  } else {
    base.resize(4096);
    const ssize_t count = ::readlink(("/proc/self/fd/" + std::to_string(directory)).c_str(), base.data(), base.size());
    if (count <= 0) return {};
    base.resize(static_cast<std::size_t>(count));
  }
  return base + "/" + path;
}

// Call with the lock held. Nothing where it is not below the root.
std::optional<Place> place_of(Recording& r, const std::string& text) {
  if (!r.on) return std::nullopt;
  const std::string path = std::filesystem::path(text).lexically_normal();
  if (path != r.root && !path.starts_with(r.root + "/")) return std::nullopt;
  Place place{0, {}};
  const std::filesystem::path parts = path.size() > r.root.size() ? path.substr(r.root.size() + 1) : std::string();
  bool first = true;
  for (const auto& part : parts) {
    if (part.empty()) continue;
    if (!std::exchange(first, false)) {
      const auto found = r.names.find({place.in, place.name});
      if (found == r.names.end()) return std::nullopt;
      place.in = found->second;
    }
    place.name = part;
  }
  return place;
}

std::optional<Node> node_at(Recording& r, const Place& place) {
  if (place.name.empty()) return place.in;
  const auto found = r.names.find({place.in, place.name});
  return found == r.names.end() ? std::nullopt : std::optional(found->second);
}

// ---- what is done; with the lock held

void opened(int fd, int directory, const char* path, int flags) {
  if (fd < 0) return;
  Recording& r = recording();
  r.open.erase(fd);
  const auto place = place_of(r, absolute(directory, path));
  if (!place) return;
  auto node = node_at(r, *place);
  if (!node) {
    if ((flags & O_CREAT) == 0) return;
    node = r.nodes++;
    r.names[{place->in, place->name}] = *node;
    r.operations.push_back(Made{place->in, place->name, *node});
  } else if ((flags & O_TRUNC) != 0) {
    r.operations.push_back(Cut{*node, 0});
  }
  r.open[fd] = {*node, 0, (flags & O_APPEND) != 0};
}

std::uint64_t size_of(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

void written(int fd, const void* bytes, ssize_t count, std::optional<std::uint64_t> offset) {
  if (count <= 0) return;
  Recording& r = recording();
  const auto found = r.open.find(fd);
  if (!r.on || found == r.open.end()) return;
  auto& open = found->second;
  const auto size = static_cast<std::uint64_t>(count);
  const std::uint64_t at = offset ? *offset : open.appends ? size_of(fd) - size : open.at;
  if (!offset) open.at = at + size;
  r.operations.push_back(Written{open.node, at, std::string(static_cast<const char*>(bytes), size)});
}

void flushed(int fd) {
  Recording& r = recording();
  const auto found = r.open.find(fd);
  if (r.on && found != r.open.end()) r.operations.push_back(Flushed{found->second.node});
}

void renamed(const std::string& from, const std::string& to) {
  Recording& r = recording();
  const auto a = place_of(r, from), b = place_of(r, to);
  if (!a || !b) return;
  const auto node = node_at(r, *a);
  if (!node) return;
  r.names.erase({a->in, a->name});
  r.names[{b->in, b->name}] = *node;
  r.operations.push_back(Renamed{a->in, a->name, b->in, b->name});
}

void removed(const std::string& path) {
  Recording& r = recording();
  const auto place = place_of(r, path);
  if (!place || r.names.erase({place->in, place->name}) == 0) return;
  r.operations.push_back(Unlinked{place->in, place->name});
}

void linked(const std::string& from, const std::string& to) {
  Recording& r = recording();
  const auto a = place_of(r, from), b = place_of(r, to);
  if (!a || !b) return;
  const auto node = node_at(r, *a);
  if (!node) return;
  r.names[{b->in, b->name}] = *node;
  r.operations.push_back(Linked{b->in, b->name, *node});
}

void made_directory(const std::string& path) {
  Recording& r = recording();
  const auto place = place_of(r, path);
  if (!place || place->name.empty()) return;
  const Node node = r.nodes++;
  r.directories.insert(node);
  r.names[{place->in, place->name}] = node;
  r.operations.push_back(Made{place->in, place->name, node, true});
}

void truncated(int fd, std::uint64_t size) {
  Recording& r = recording();
  const auto found = r.open.find(fd);
  if (r.on && found != r.open.end()) r.operations.push_back(Cut{found->second.node, size});
}

// ---- after the cut

// The disk as it was made again: contents by node, names by directory.
struct Disk {
  std::map<Node, std::string> contents;
  std::map<std::pair<Node, std::string>, Node> names;
  std::set<Node> directories{0};
};

// The operations whose effect the cut cannot undo: those on a node that was flushed after them.
std::vector<bool> kept_for_sure(const std::vector<Operation>& operations) {
  std::set<Node> flushed;
  std::vector<bool> sure(operations.size());
  for (std::size_t i = operations.size(); i-- > 0;) {
    sure[i] = std::visit(
        [&](const auto& o) {
          using O = std::decay_t<decltype(o)>;
          if constexpr (std::is_same_v<O, Flushed>) {
            flushed.insert(o.node);
            return true;
          } else if constexpr (std::is_same_v<O, Renamed>) {
            return flushed.contains(o.to_in) || flushed.contains(o.from_in);
          } else if constexpr (requires { o.in; }) {
            return flushed.contains(o.in);
          } else {
            return flushed.contains(o.node);
          }
        },
        operations[i]);
  }
  return sure;
}

void put(std::string& contents, std::uint64_t offset, std::string_view bytes) {
  if (contents.size() < offset + bytes.size()) contents.resize(offset + bytes.size());
  std::ranges::copy(bytes, contents.begin() + static_cast<std::ptrdiff_t>(offset));
}

struct Apply {
  Disk& disk;
  const bool whole;
  std::mt19937& random;

  void operator()(const Made& o) const {
    disk.names[{o.in, o.name}] = o.node;
    if (o.directory) disk.directories.insert(o.node);
  }
  void operator()(const Linked& o) const { disk.names[{o.in, o.name}] = o.node; }
  void operator()(const Unlinked& o) const { disk.names.erase({o.in, o.name}); }
  void operator()(const Renamed& o) const {
    const auto found = disk.names.find({o.from_in, o.from});
    if (found == disk.names.end()) return;  // its name was never on the disk
    disk.names[{o.to_in, o.to}] = found->second;
    disk.names.erase({o.from_in, o.from});
  }
  void operator()(const Written& o) const {
    std::string& contents = disk.contents[o.node];
    if (whole) return put(contents, o.offset, o.bytes);
    for (std::size_t begin = 0; begin < o.bytes.size(); begin += kSector) {
      if (random() % 2 == 0) put(contents, o.offset + begin, std::string_view(o.bytes).substr(begin, kSector));
    }
  }
  void operator()(const Cut& o) const { disk.contents[o.node].resize(o.size); }
  void operator()(const Flushed&) const {}
};

void write_out(const Disk& disk, Node directory, const std::filesystem::path& place) {
  std::filesystem::create_directories(place);
  for (const auto& [name, node] : disk.names) {
    if (name.first != directory) continue;
    if (disk.directories.contains(node)) {
      write_out(disk, node, place / name.second);
      continue;
    }
    std::ofstream file(place / name.second, std::ios::binary);
    if (const auto found = disk.contents.find(node); found != disk.contents.end()) {
      file.write(found->second.data(), static_cast<std::streamsize>(found->second.size()));
    }
  }
}

}  // namespace

void record_disk(const std::filesystem::path& root) {
  Recording& r = recording();
  const MutexLock lock(r.mutex);
  r.root = std::filesystem::path(root).lexically_normal();
  r.operations.clear();
  r.names.clear();
  r.open.clear();
  r.directories = {0};
  r.nodes = 1;
  r.on = true;
}

void stop_recording() {
  const MutexLock lock(recording().mutex);
  recording().on = false;
}

std::size_t recorded_operations() {
  const MutexLock lock(recording().mutex);
  return recording().operations.size();
}

// An operation that is not there for sure may be there: but not one on a name in a directory that is not itself.
void restore_after_power_cut(std::size_t moment, std::mt19937& random, bool keep_nothing,
                             const std::filesystem::path& place) {
  std::vector<Operation> operations;
  {
    const MutexLock lock(recording().mutex);
    const auto& all = recording().operations;
    operations.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(moment, all.size())));
  }
  const std::vector<bool> sure = kept_for_sure(operations);
  Disk disk;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const bool is_write = std::holds_alternative<Written>(operations[i]);
    if (!sure[i] && (keep_nothing || (!is_write && random() % 2 == 0))) continue;
    std::visit(Apply{disk, sure[i], random}, operations[i]);
  }
  write_out(disk, 0, place);
}

}  // namespace atl::test

// ---- libc's functions, in place of its own

using namespace atl;
using namespace atl::test;

extern "C" {

int open(const char* path, int flags, ...) {
  static const auto next = real<int (*)(const char*, int, ...)>("open");
  const MutexLock lock(recording().mutex);
  va_list arguments;
  va_start(arguments, flags);
  const int fd = next(path, flags, va_arg(arguments, unsigned));
  va_end(arguments);
  opened(fd, AT_FDCWD, path, flags);
  return fd;
}
int open64(const char* path, int flags, ...) {
  static const auto next = real<int (*)(const char*, int, ...)>("open64");
  const MutexLock lock(recording().mutex);
  va_list arguments;
  va_start(arguments, flags);
  const int fd = next(path, flags, va_arg(arguments, unsigned));
  va_end(arguments);
  opened(fd, AT_FDCWD, path, flags);
  return fd;
}
int openat(int directory, const char* path, int flags, ...) {
  static const auto next = real<int (*)(int, const char*, int, ...)>("openat");
  const MutexLock lock(recording().mutex);
  va_list arguments;
  va_start(arguments, flags);
  const int fd = next(directory, path, flags, va_arg(arguments, unsigned));
  va_end(arguments);
  opened(fd, directory, path, flags);
  return fd;
}
ssize_t write(int fd, const void* bytes, size_t count) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t)>("write");
  const MutexLock lock(recording().mutex);
  const ssize_t done = next(fd, bytes, count);
  written(fd, bytes, done, std::nullopt);
  return done;
}
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  const MutexLock lock(recording().mutex);
  const ssize_t done = next(fd, bytes, count, offset);
  written(fd, bytes, done, static_cast<std::uint64_t>(offset));
  return done;
}
ssize_t pwrite64(int fd, const void* bytes, size_t count, off_t offset) { return pwrite(fd, bytes, count, offset); }
int fsync(int fd) {
  static const auto next = real<int (*)(int)>("fsync");
  const MutexLock lock(recording().mutex);
  const int done = next(fd);
  if (done == 0) flushed(fd);
  return done;
}
int fdatasync(int fd) { return fsync(fd); }
int rename(const char* from, const char* to) {
  static const auto next = real<int (*)(const char*, const char*)>("rename");
  const MutexLock lock(recording().mutex);
  const int done = next(from, to);
  if (done == 0) renamed(absolute(AT_FDCWD, from), absolute(AT_FDCWD, to));
  return done;
}
int link(const char* from, const char* to) {
  static const auto next = real<int (*)(const char*, const char*)>("link");
  const MutexLock lock(recording().mutex);
  const int done = next(from, to);
  if (done == 0) linked(absolute(AT_FDCWD, from), absolute(AT_FDCWD, to));
  return done;
}
int unlink(const char* path) {
  static const auto next = real<int (*)(const char*)>("unlink");
  const MutexLock lock(recording().mutex);
  const int done = next(path);
  if (done == 0) removed(absolute(AT_FDCWD, path));
  return done;
}
int unlinkat(int directory, const char* path, int flags) {
  static const auto next = real<int (*)(int, const char*, int)>("unlinkat");
  const MutexLock lock(recording().mutex);
  const std::string whole = absolute(directory, path);
  const int done = next(directory, path, flags);
  if (done == 0) removed(whole);
  return done;
}
int rmdir(const char* path) {
  static const auto next = real<int (*)(const char*)>("rmdir");
  const MutexLock lock(recording().mutex);
  const int done = next(path);
  if (done == 0) removed(absolute(AT_FDCWD, path));
  return done;
}
int remove(const char* path) {
  static const auto next = real<int (*)(const char*)>("remove");
  const MutexLock lock(recording().mutex);
  const int done = next(path);
  if (done == 0) removed(absolute(AT_FDCWD, path));
  return done;
}
int mkdir(const char* path, mode_t mode) {
  static const auto next = real<int (*)(const char*, mode_t)>("mkdir");
  const MutexLock lock(recording().mutex);
  const int done = next(path, mode);
  if (done == 0) made_directory(absolute(AT_FDCWD, path));
  return done;
}
int ftruncate(int fd, off_t size) {
  static const auto next = real<int (*)(int, off_t)>("ftruncate");
  const MutexLock lock(recording().mutex);
  const int done = next(fd, size);
  if (done == 0) truncated(fd, static_cast<std::uint64_t>(size));
  return done;
}

}  // extern "C"
