// atoll-parquet FILE COLUMN: the rows of a text column, as parquet_stream.h has it, on standard output. A program of
// its own, for two reasons: Apache Arrow is 60 MB and not everywhere; and what a damaged file makes of it, an abort
// among that, ends this program and not the one that wants the text. Exits with 0 when it said what there is to say.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "net/data/parquet_rows.h"
#include "net/data/parquet_stream.h"

namespace {

// Most files take some MB: a batch of rows, and a page. A length in a damaged file may say anything.
constexpr std::int64_t kArrowBytes = std::int64_t{4} << 30;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr rlim_t kAddressBytes = RLIM_INFINITY;  // a sanitizer's own take terabytes
#else
constexpr rlim_t kAddressBytes = rlim_t{8} << 30;  // with what does not come out of Arrow's pool
#endif
constexpr std::size_t kBufferBytes = 256 * 1024;

class Output {
 public:
  bool put(std::uint32_t number) { return put({reinterpret_cast<const char*>(&number), sizeof(number)}); }
  bool put(std::string_view bytes) {
    if (buffer_.size() + bytes.size() < kBufferBytes) {
      buffer_ += bytes;
      return true;
    }
    return flush() && write(bytes);
  }
  bool flush() {
    const bool written = write(buffer_);
    buffer_.clear();
    return written;
  }

 private:
  static bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  std::string buffer_;
};

// No file takes the machine's memory, nor leaves a dump behind; where memory is short, this process goes first.
void limit_itself() {
  const rlimit memory{kAddressBytes, kAddressBytes}, no_dump{0, 0};
  (void)::setrlimit(RLIMIT_AS, &memory);
  (void)::setrlimit(RLIMIT_CORE, &no_dump);
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return;
  (void)!::write(score, "1000", 4);
  ::close(score);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    constexpr std::string_view usage = "usage: atoll-parquet FILE COLUMN (started by 'atoll data prepare')\n";
    (void)!::write(STDERR_FILENO, usage.data(), usage.size());
    return 2;
  }
  ::signal(SIGPIPE, SIG_DFL);  // nobody reads any more
  limit_itself();
  Output output;
  const std::string failure =
      atl::read_parquet_rows(argv[1], argv[2], kArrowBytes, [&](std::optional<std::string_view> text) {
        if (!text) return output.put(atl::kRowWithoutText);
        const std::string_view row = text->substr(0, atl::kLongestRow);
        return output.put(static_cast<std::uint32_t>(row.size())) && output.put(row);
      });
  if (failure.empty()) return output.put(atl::kEndOfRows) && output.flush() ? 0 : 1;
  const std::string_view words = std::string_view(failure).substr(0, atl::kLongestFailure);
  return output.put(atl::kReadingFailed) && output.put(static_cast<std::uint32_t>(words.size())) && output.put(words) &&
                 output.flush()
             ? 0
             : 1;
}
