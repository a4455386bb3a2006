// The data of a hub's run: made into the run's configuration by `atoll hub init`, and which files the hub serves of it.
// Blocks on the disk; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "net/control/home.h"
#include "net/data/run_dataset.h"
#include "net/hub/hub_home.h"

namespace atl {

struct HubDataSource {
  std::filesystem::path directory;        // made by `atoll data prepare`; remembered, read while serving
  std::string name = {};                  // empty: the directory's own
  std::vector<std::string> mirrors = {};  // beside the hub (RunSource::mirrors)
};

// See OnTreeProgress (net/data/tree_builder.h).
using OnIndexing = std::function<bool(const std::string& source, std::uint64_t done_bytes, std::uint64_t of_bytes)>;

// Of sources with one tokenizer. Their hash trees are copied to the hub's home where they are there (`atoll data
// index`: then the shards themselves may be elsewhere), and made there where not, which reads all of the data.
// `weights`: none, by their tokens. kInvalidArgument when no island could train with sequences of that length.
Result<RunDataset> make_run_dataset(const std::vector<HubDataSource>& sources, const std::vector<NamedShare>& weights,
                                    std::uint32_t sequence_length, const HubHome& home, const OnIndexing& on_indexing);

// A file that islands may ask for.
struct ServedFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
};
using ServedFiles = std::map<std::string, ServedFile>;  // by what follows /data/
// Of the data, and of the tasks.
Result<ServedFiles> served_files(const RunConfig& run, const HubFile& hub, const HubHome& home);
// Which of them are not there, or too short, for the organiser; empty: all could be as the run has them. Only their
// sizes are looked at.
std::string lacking(const ServedFiles& files);

// Whether it is the one that the run names, of this source (empty: of the only one).
Status check_moved_data(const RunConfig& run, const std::string& source, const std::filesystem::path& directory);

}  // namespace atl
