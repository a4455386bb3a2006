#include "trainer/evaluate/text_stream.h"

#include <algorithm>
#include <utility>

namespace atl {
namespace {

// Bytes at the end that begin a UTF-8 character and do not end it.
std::size_t unfinished_character(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(text.size(), 3); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t length = byte >= 0xF0 && byte < 0xF8 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return byte < 0xF8 && length > back ? back : 0;
  }
  return 0;
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {}

std::size_t TextStream::held_back() const {
  std::size_t held = unfinished_character(text_);
  for (const std::string& stop : stops_) {
    for (std::size_t length = std::min(stop.empty() ? 0 : stop.size() - 1, text_.size()); length > held; --length) {
      if (std::string_view(text_).ends_with(std::string_view(stop).substr(0, length))) held = length;
    }
  }
  return held;
}

std::string TextStream::add(std::string_view bytes) {
  if (stopped_) return {};
  const std::size_t before = text_.size();
  text_ += bytes;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    if (stop.empty()) continue;
    const std::size_t from = before < stop.size() ? 0 : before - stop.size() + 1;
    end = std::min(end, text_.find(stop, from));
  }
  stopped_ = end != std::string::npos;
  if (stopped_) {
    text_.resize(end);
    return finish();
  }
  const std::size_t until = std::max(shown_, text_.size() - held_back());
  const std::size_t first = std::exchange(shown_, until);
  return text_.substr(first, until - first);
}

std::string TextStream::finish() {
  const std::size_t first = std::min(std::exchange(shown_, text_.size()), text_.size());
  return text_.substr(first);
}

}  // namespace atl
