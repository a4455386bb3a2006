// A text that comes in bytes, given on in whole characters, up to a stop: what may still become a character or a stop
// is held back. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace atl {

class TextStream {
 public:
  // The text ends before the first of `stops` in it; empty ones are not looked for.
  explicit TextStream(std::vector<std::string> stops);

  // What can be shown with it. Nothing more once stopped().
  std::string add(std::string_view bytes);
  // The rest, of a text that ends here; a character that is cut off included.
  std::string finish();
  bool stopped() const { return stopped_; }
  // All of it so far, what is held back included, up to the stop.
  const std::string& text() const { return text_; }

 private:
  std::size_t held_back() const;

  const std::vector<std::string> stops_;
  std::string text_;
  std::size_t shown_ = 0;
  bool stopped_ = false;
};

}  // namespace atl
