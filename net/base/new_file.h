// Files and directories that take their place only once they are whole. Until then they lie beside it under a name that
// nobody can guess, made by this process and by no other: what somebody planted there is neither followed nor
// overwritten. They are gone with their owner until they are placed. Block on the disk; one thread.
#pragma once

#include <cstdint>
#include <filesystem>

#include "net/base/bytes.h"
#include "net/base/file.h"
#include "net/base/result.h"
#include "net/base/unique_fd.h"

namespace atl {

class NewFile {
 public:
  // Beside `path`, whose directory is there. What a process that was killed left of it is removed.
  static Result<NewFile> create(const std::filesystem::path& path, FileMode mode);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  Status write(ByteView bytes);  // appends
  // At their place, in any order, not with write(). The kernel is asked to write them out at once, so that to flush the
  // file takes little then; nobody waits for it.
  Status write_at(std::uint64_t offset, ByteView bytes);
  // Flushed, renamed over what is there, and the directory flushed: after it a power cut leaves the new file, before it
  // the old one.
  Status take_place();

 private:
  NewFile(std::filesystem::path path, std::filesystem::path temporary, UniqueFd fd);

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty: it has taken its place
  UniqueFd fd_;
};

class NewDirectory {
 public:
  // Beside `path`; parents are made.
  static Result<NewDirectory> create(const std::filesystem::path& path, FileMode mode);
  NewDirectory(NewDirectory&& other) noexcept;
  NewDirectory& operator=(NewDirectory&&) = delete;
  ~NewDirectory();  // with all that is in it

  const std::filesystem::path& path() const { return temporary_; }  // where it is until it has taken its place
  // `path` must not be there, or be an empty directory. Flushed, as are the names in it; its files are flushed by
  // whoever wrote them.
  Status take_place();

 private:
  NewDirectory(std::filesystem::path path, std::filesystem::path temporary);

  std::filesystem::path path_;
  std::filesystem::path temporary_;
};

// What processes that were killed left of new files in this directory, whatever their place was to be. Those that
// somebody writes stay. Of a directory that is not there: nothing.
void remove_forgotten_files(const std::filesystem::path& directory);

// Renamed over what is there, and the directories of both names flushed: a power cut does not undo it. Of a file that
// this process has written, flush the file first.
Status rename_and_flush(const std::filesystem::path& from, const std::filesystem::path& to);

// What was renamed in it, or made, stays so after a power cut.
Status flush_directory(const std::filesystem::path& directory);

}  // namespace atl
