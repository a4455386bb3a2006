#include "app/core/line_splitter.h"

namespace atl {

void LineSplitter::append(const QByteArray& bytes) {
  if (begin_ > 0) {
    bytes_.remove(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
  }
  bytes_ += bytes;
}

std::optional<QByteArray> LineSplitter::next() {
  if (overlong_) return std::nullopt;
  const qsizetype end = bytes_.indexOf('\n', scanned_);
  const qsizetype length = (end < 0 ? bytes_.size() : end) - begin_;
  if (static_cast<std::size_t>(length) > max_line_bytes_) {
    overlong_ = true;
    bytes_.clear();
    begin_ = scanned_ = 0;
    return std::nullopt;
  }
  if (end < 0) {
    scanned_ = bytes_.size();
    return std::nullopt;
  }
  QByteArray line = bytes_.mid(begin_, length);
  begin_ = scanned_ = end + 1;
  return line;
}

}  // namespace atl
