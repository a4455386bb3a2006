// What a directory would hold after a power cut: all that the process did to its files is recorded, and any moment of
// it can be made again with what was not flushed lost, whole or in part. As the recorded-writes replayers of LevelDB's
// and SQLite's tests do it, with the file system's worst manners: of a file, writes since its last fsync are there or
// not, each sector on its own; of a directory, names that were made, removed or renamed since its last fsync are or are
// not, each on its own. Only what is flushed can be relied on.
//
// The functions of libc that change files are this file's in a program that is linked with it. One recording at a time;
// any thread may write.
#pragma once

#include <cstddef>
#include <filesystem>
#include <random>

namespace atl::test {

// From now on what is done below `root`, which is empty, is recorded.
void record_disk(const std::filesystem::path& root);
void stop_recording();
// Things done so far: a moment is a number of them.
std::size_t recorded_operations();
// `place`, which is not there yet, becomes what `root` would be after a power cut at that moment. Unflushed things are
// lost or not by chance; with `keep_nothing` all of them are.
void restore_after_power_cut(std::size_t moment, std::mt19937& random, bool keep_nothing,
                             const std::filesystem::path& place);

}  // namespace atl::test
