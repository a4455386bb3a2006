#include "trainer/program/model_source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "net/base/file.h"
#include "net/base/printable.h"
#include "net/control/control_client.h"
#include "net/control/home.h"
#include "net/control/methods.h"
#include "net/model_files/model_reader.h"
#include "trainer/island/model_export.h"

namespace atl {
namespace {

// A directory that goes with its owner.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> make() {
    std::string path = (std::filesystem::temp_directory_path() / "atoll-model-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) return errno_error("create a temporary directory like", path);
    return TemporaryDirectory(path);
  }
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

Result<OuterStep> export_from_checkpoint(const IslandHome& home, const std::filesystem::path& output,
                                         const ModelFilesOptions& files, bool for_others,
                                         std::optional<OuterStep> wanted) {
  ModelCard card;
  if (const auto join = load_membership(home); join.ok()) {
    card.run_id = join->run_id;
    card.run_name = join->run_name;
    if (const auto self = load_identity(home.identity()); for_others && self.ok()) {
      auto contributors = ask_contributors(*self, join->hub_addresses);
      if (contributors.ok()) card.contributors = std::move(*contributors);
      if (!contributors.ok())
        fmt::print(stderr, "the model's card names no contributors: the run's hub does not answer\n");
    }
  }
  return export_checkpoint(home.checkpoint(), std::move(card), home.data(), output, files, wanted);
}

}  // namespace

Result<OuterStep> export_from_home(const std::filesystem::path& directory, const std::filesystem::path& output,
                                   const ModelFilesOptions& files, bool for_others, std::optional<OuterStep> wanted) {
  const IslandHome home{directory};
  if (wanted) return export_from_checkpoint(home, output, files, for_others, wanted);
  auto client = ControlClient::connect(home.control_socket(), Deadline::after(std::chrono::seconds(5)));
  if (!client.ok()) {
    if (client.error().code != ErrorCode::kNotRunning) return client.error();
    return export_from_checkpoint(home, output, files, for_others, {});
  }
  const nlohmann::json params = encode_message(method::ModelExport{
      std::filesystem::absolute(output).string(), std::string(name_of(files.dtype)), files.max_shard_bytes});
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json reply, (*client)->call(method::ModelExport::kName, params,
                                                                     Deadline::after(std::chrono::minutes(30))));
  ATOLL_ASSIGN_OR_RETURN(const auto exported, decode_message<method::ModelExported>(reply));
  return OuterStep{exported.outer_step};
}

Result<OpenedModel> open_model(const ModelSource& source) {
  std::shared_ptr<const TemporaryDirectory> exported;
  std::filesystem::path directory = source.model;
  if (directory.empty()) {
    ATOLL_ASSIGN_OR_RETURN(TemporaryDirectory temporary, TemporaryDirectory::make());
    exported = std::make_shared<const TemporaryDirectory>(std::move(temporary));
    directory = exported->path();
    ATOLL_RETURN_IF_ERROR(export_from_home(source.home, directory, {}, /*for_others=*/false));
  }
  ATOLL_ASSIGN_OR_RETURN(ModelReader reader, ModelReader::open(directory));
  if (!reader.note().empty()) fmt::print(stderr, "atoll-trainer: {}\n", printable(reader.note()));
  return OpenedModel{std::move(exported), std::move(directory), std::move(reader)};
}

int threads_or_all(int threads) {
  return threads > 0 ? threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace atl
