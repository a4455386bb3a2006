// Where an island and a hub keep their files. Everything that belongs to one membership of one run is in one directory,
// its home. Plain values; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "net/base/address.h"
#include "net/base/result.h"
#include "net/control/words.h"

namespace atl {

// What an owner writes: auto, processor or gpu; auto, fp32 or bf16.
Result<DeviceChoice> parse_device_choice(std::string_view text);
Result<PrecisionChoice> parse_precision_choice(std::string_view text);

// <home>/join.json of an island: how to find its run again. Written by `atoll join`, read by the trainer. No secrets in
// it.
struct JoinFile {
  static constexpr int kVersion = 1;

  std::string run_id;
  std::string run_name;
  std::vector<Address> hub_addresses;  // tried in turn
  std::string display_name;            // for people; at most 64 bytes
  Address bind{"0.0.0.0", 0};          // the inbound port; 0: any free one
  std::string advertised_host;         // empty: the host that the hub sees
  int local_ranks = 0;                 // shards inside the island, a thread each; 0: the trainer chooses
  int threads = 0;                     // compute threads; 0: all cores
  int micro_batch = 0;                 // sequences that a shard computes at once; 0: as many as the memory allows
  DeviceChoice device = DeviceChoice::kAuto;           // what computes
  PrecisionChoice precision = PrecisionChoice::kAuto;  // of activations and gathered weights
  std::string region;                                  // where it stands, for people; may be empty
  std::string gpus = "all";                            // that the trainer may use: "all", "none", "0-3,6"

  std::string to_json() const;
  static Result<JoinFile> from_json(std::string_view text);
};

// kNotJoined when there is none.
Result<JoinFile> load_join_file(const std::filesystem::path& path);
struct IslandHome;
// Also of a home whose owner left the run: its states are still there to be read.
Result<JoinFile> load_membership(const IslandHome& home);
Status save_join_file(const std::filesystem::path& path, const JoinFile& join);  // 0600

struct IslandHome {
  std::filesystem::path directory;

  std::filesystem::path identity() const { return directory / "identity"; }  // net/tls/identity.h
  std::filesystem::path join_file() const { return directory / "join.json"; }
  std::filesystem::path left_file() const { return directory / "left.json"; }  // the join file, after `atoll leave`
  std::filesystem::path join_key_file() const { return directory / "joining.json"; }  // net/enrol/join_key.h
  std::filesystem::path data() const { return directory / "data"; }                   // the run's token shards
  std::filesystem::path checkpoint() const { return directory / "checkpoint"; }
  // Of a run that was joined before another one.
  std::filesystem::path checkpoint_of(const std::string& run_id) const { return directory / ("checkpoint." + run_id); }
  std::filesystem::path control_socket() const { return directory / "control.sock"; }  // of the trainer
  std::filesystem::path trainer_log() const { return directory / "trainer.log"; }
};

// Where an agent keeps its own files, and the home of its island. With a directory of one's own (--home, ATOLL_HOME)
// everything is in it; else by the XDG base directories, or the system's, for a system service.
struct AgentHome {
  std::filesystem::path socket;       // of the agent's control protocol
  std::filesystem::path config_file;  // the user's; never written by a program
  std::filesystem::path state;        // directory of what the agent writes
  IslandHome island;

  std::filesystem::path settings_file() const { return state / "settings.json"; }
  std::filesystem::path wish_file() const { return state / "wish.json"; }
  std::filesystem::path contributions() const { return state / "contributions.json"; }
  std::filesystem::path gpu_power_file() const { return state / "gpu_power"; }  // limits to be restored
  std::filesystem::path history() const { return state / "history.sqlite"; }
  std::filesystem::path agent_log() const { return state / "agent.log"; }
  std::filesystem::path trainer_log() const { return state / "trainer.log"; }    // what it prints
  std::filesystem::path trainer_file() const { return state / "trainer.json"; }  // which process it is
};

AgentHome agent_home_in(const std::filesystem::path& directory);
AgentHome system_agent_home();  // /run/atoll, /etc/atoll, /var/lib/atoll
// `given`: a directory, or empty for $ATOLL_HOME, else this user's own.
Result<AgentHome> find_agent_home(const std::string& given);

struct HubHome {
  std::filesystem::path directory;

  std::filesystem::path authority() const { return directory / "authority"; }  // the certificate authority's key
  std::filesystem::path identity() const { return directory / "identity"; }    // the hub's own certificate
  std::filesystem::path run_file() const { return directory / "run.json"; }    // RunConfig
  std::filesystem::path hub_file() const { return directory / "hub.json"; }    // where this hub finds its dataset
  std::filesystem::path trees() const { return directory / "trees"; }          // of its data (net/data/chunk_tree.h)
  std::filesystem::path database() const { return directory / "hub.sqlite"; }
  std::filesystem::path control_socket() const { return directory / "control.sock"; }
  // Of a run that begins with a model of its operator's (net/hub/base_model.h).
  std::filesystem::path base_model_manifest() const { return directory / "base_model.json"; }
  std::filesystem::path base_model_parameters() const { return directory / "base_model.parameters"; }
};

// `atoll train --dir DIR` keeps its hub and its island in a directory; where one of them is asked for, DIR means it,
// too.
struct TrainHome {
  std::filesystem::path directory;

  HubHome hub() const { return {directory / "hub"}; }
  IslandHome island() const { return {directory / "island"}; }
};
std::filesystem::path island_directory(const std::filesystem::path& given);
std::filesystem::path hub_directory(const std::filesystem::path& given);

// $ATOLL_HOME, else $XDG_DATA_HOME/atoll, else ~/.local/share/atoll.
Result<std::filesystem::path> default_island_home();
// $ATOLL_HUB_HOME, else $XDG_DATA_HOME/atoll-hub, else ~/.local/share/atoll-hub.
Result<std::filesystem::path> default_hub_home();
// XDG base directories with "atoll" appended: $XDG_CACHE_HOME/atoll, $XDG_STATE_HOME/atoll, or their defaults under
// $HOME.
Result<std::filesystem::path> cache_directory();
Result<std::filesystem::path> state_directory();

}  // namespace atl
