// What the options --record and --replay ask for. What goes wrong with them is printed at once, for the window may be
// looked at for days, and is the program's exit code in the end. Owned by main(), or by a test; GUI thread.
#pragma once

#include <memory>

#include "app/core/recorder.h"
#include "app/gui/command_line.h"

namespace atl {

class Nodes;

class Recordings {
 public:
  // `nodes`: as open_nodes made them; outlives this.
  explicit Recordings(Nodes& nodes) : nodes_(nodes) {}
  ~Recordings();

  Status begin(const GuiOptions& options);
  // Of a program that would end with `code`: 1 when a recording is not whole.
  int exitCode(int code) const { return code == 0 && failed_ ? 1 : code; }

 private:
  void complain(const QString& what);

  Nodes& nodes_;
  std::unique_ptr<Recorder> recorder_;
  bool failed_ = false;
};

}  // namespace atl
