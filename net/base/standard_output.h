// What a program prints on standard output, and whether all of it got there: a full disk and a reader that went away
// are the program's end, and not bytes that are missing in silence. Made in main, before SIGPIPE is ignored and before
// anything is printed; one a process.
#pragma once

#include <atomic>
#include <functional>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace atl {

class StandardOutput {
 public:
  // std::cout writes by way of it while it lives. `on_failure` is called once, when std::cout could not: on the thread
  // that prints, so that who prints for hours can end.
  explicit StandardOutput(std::function<void()> on_failure = {});
  ~StandardOutput();
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;

  // Another than std::cout could not write there. Any thread.
  void note_failure(int error_number);
  bool failed() const { return error_number_ != 0; }

  // Writes what is left, also of C's stdout. Then the exit code of a program that would end with `exit_code`: another
  // than 0, with a line on stderr, where something was lost. Where nobody reads any more, the program ends here, by
  // SIGPIPE, as others do; but not if whoever started it had that signal ignored. No other thread prints any more.
  int finish(int exit_code, std::string_view program);

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(StandardOutput& of);

   protected:
    int_type overflow(int_type next) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;
    int sync() override;

   private:
    bool write_out();

    StandardOutput& of_;
    const bool is_terminal_;
    std::string text_;  // not written yet
  };

  const std::function<void()> on_failure_;
  const bool pipe_signal_ignored_;
  std::atomic<int> error_number_{0};  // of the first failure; kUnknown: nobody kept it
  Buffer buffer_;
  std::streambuf* const before_;

  static constexpr int kUnknown = -1;
};

}  // namespace atl
