// Cuts bytes that arrive in pieces into lines of bounded length. Owned by who reads; one thread.
#pragma once

#include <cstddef>
#include <optional>

#include <QByteArray>

namespace atl {

class LineSplitter {
 public:
  explicit LineSplitter(std::size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  void append(const QByteArray& bytes);
  // The next whole line, without its newline; empty when there is none yet, or it is too long.
  std::optional<QByteArray> next();
  // The line that comes next is longer than it may be; nothing more will come.
  bool overlong() const { return overlong_; }

 private:
  const std::size_t max_line_bytes_;
  QByteArray bytes_;
  qsizetype begin_ = 0;    // of the line that comes next
  qsizetype scanned_ = 0;  // no newline before it
  bool overlong_ = false;
};

}  // namespace atl
