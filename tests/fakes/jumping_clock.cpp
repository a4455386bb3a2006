// Loaded before the C library (LD_PRELOAD) into a program under test: its wall clock is off by as many seconds as stand
// in the file JUMPING_CLOCK, an int64 that the test changes at any time. The clock that measures durations stays as it
// is.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

std::int64_t offset_seconds() {
  static const volatile std::int64_t* const offset = [] {
    static const std::int64_t none = 0;
    const char* file = std::getenv("JUMPING_CLOCK");
    const int fd = file != nullptr ? ::open(file, O_RDONLY | O_CLOEXEC) : -1;
    void* mapped = fd < 0 ? MAP_FAILED : ::mmap(nullptr, sizeof none, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) ::close(fd);
    return mapped == MAP_FAILED ? &none : static_cast<const std::int64_t*>(mapped);
  }();
  return *offset;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long result = ::syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset_seconds();
  return static_cast<int>(result);
}

int gettimeofday(timeval* __restrict now, void* __restrict) noexcept {
  timespec precise{};
  const int result = clock_gettime(CLOCK_REALTIME, &precise);
  *now = {precise.tv_sec, static_cast<suseconds_t>(precise.tv_nsec / 1000)};
  return result;
}

time_t time(time_t* seconds) noexcept {
  timespec now{};
  (void)clock_gettime(CLOCK_REALTIME, &now);
  if (seconds != nullptr) *seconds = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
