// What a trainer and the agent that starts it agree on beside the control protocol: how it is told that it has an
// agent, where it logs, and how it ends. Plain values; any thread.
#pragma once

namespace atl {

// In the environment of a trainer that an agent started: how many seconds without a call of `agent.alive` it goes on
// before it saves and ends.
inline constexpr const char* kAgentPatienceVariable = "ATOLL_AGENT_PATIENCE";

// Likewise: the most that it may send and receive at its start, bytes/s; from then on `agent.alive` says it. Not set,
// or empty: no limit.
inline constexpr const char* kUploadCapVariable = "ATOLL_UPLOAD_BYTES_PER_SECOND";
inline constexpr const char* kDownloadCapVariable = "ATOLL_DOWNLOAD_BYTES_PER_SECOND";

// Likewise: which outer states its owner wants kept beside those of the run: of so many days back the newest of each,
// and these outer steps, apart by commas. Not set: none.
inline constexpr const char* kKeepDaysVariable = "ATOLL_TRAINER_KEEP_DAYS";
inline constexpr const char* kKeepRoundsVariable = "ATOLL_TRAINER_KEEP_ROUNDS";

// Likewise: seconds in which the work of an open round is written to the disk. Not set, 0: only by a pause.
inline constexpr const char* kWorkEveryVariable = "ATOLL_TRAINER_WORK_EVERY";

// Likewise: bytes of the disk that the run's data may take. Not set: as many as by default.
inline constexpr const char* kDataCacheVariable = "ATOLL_TRAINER_DATA_CACHE";

// Likewise: which mirrors of the run's data it may ask (net/data/mirror_policy.h). Not set: "https".
inline constexpr const char* kDataMirrorsVariable = "ATOLL_TRAINER_DATA_MIRRORS";

// Likewise: "name" where models of the run may name this island. Not set, "none": they may not.
inline constexpr const char* kCreditVariable = "ATOLL_TRAINER_CREDIT";
inline constexpr const char* kCreditByName = "name";

// Likewise: the owner's object store (StoreSettings), and the file with its credentials: their place alone, never they.
inline constexpr const char* kStoreEndpointVariable = "ATOLL_TRAINER_STORE_ENDPOINT";
inline constexpr const char* kStoreRegionVariable = "ATOLL_TRAINER_STORE_REGION";
inline constexpr const char* kStoreBucketVariable = "ATOLL_TRAINER_STORE_BUCKET";
inline constexpr const char* kStoreCredentialsVariable = "ATOLL_TRAINER_STORE_CREDENTIALS";
inline constexpr const char* kStoreAuthoritiesVariable = "ATOLL_TRAINER_STORE_AUTHORITIES";

// Likewise: the file that its output goes to, and how many bytes of the disk that and the one before it may take: the
// trainer itself keeps it so, for it may live for weeks.
inline constexpr const char* kLogFileVariable = "ATOLL_TRAINER_LOG";
inline constexpr const char* kLogBytesVariable = "ATOLL_TRAINER_LOG_BYTES";

// Likewise: the least level of what it logs, a name of the configuration's log.level. Not set: "info".
inline constexpr const char* kLogLevelVariable = "ATOLL_TRAINER_LOG_LEVEL";

// The trainer's exit status after `pause`: its inner state is on the disk. Beyond those of net/base/exit_code.h, which
// `atoll` has too.
inline constexpr int kTrainerPausedExit = 20;
// The same after `finish`: the round is committed, and it has left the run.
inline constexpr int kTrainerFinishedExit = 21;

// The last line of a trainer's log names its exit status, for an agent that is not its parent; and one before it says
// whether the run has ended or only its own part in it. Both are there at every log level.
inline constexpr const char* kRunGoesOnWords = "run_finished=false";
inline constexpr const char* kTrainerExitWords = "trainer exit_status=";

}  // namespace atl
