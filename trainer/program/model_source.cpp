#include "trainer/program/model_source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "net/base/file.h"
#include "net/control/control_client.h"
#include "net/control/home.h"
#include "net/control/methods.h"
#include "trainer/checkpoint/huggingface.h"
#include "trainer/island/checkpoint.h"

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

Result<OuterStep> export_from_checkpoint(const IslandHome& home, const std::filesystem::path& output) {
  ATOLL_ASSIGN_OR_RETURN(const IslandCheckpoint checkpoint, load_checkpoint(home.checkpoint()));
  ATOLL_RETURN_IF_ERROR(write_model_directory(output, checkpoint.model, checkpoint.outer->parameters()));
  return checkpoint.outer->version();
}

}  // namespace

Result<OuterStep> export_from_home(const std::filesystem::path& directory, const std::filesystem::path& output) {
  const IslandHome home{directory};
  auto client = ControlClient::connect(home.control_socket(), Deadline::after(std::chrono::seconds(5)));
  if (!client.ok()) {
    if (client.error().code != ErrorCode::kNotRunning) return client.error();
    return export_from_checkpoint(home, output);
  }
  const nlohmann::json params = encode_message(method::ModelExport{std::filesystem::absolute(output).string()});
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json reply, (*client)->call(method::ModelExport::kName, params,
                                                                     Deadline::after(std::chrono::minutes(30))));
  ATOLL_ASSIGN_OR_RETURN(const auto exported, decode_message<method::ModelExported>(reply));
  return OuterStep{exported.outer_step};
}

Result<std::unique_ptr<Engine>> load_engine(const ModelSource& source, int threads) {
  std::optional<TemporaryDirectory> exported;
  std::filesystem::path directory = source.model;
  if (directory.empty()) {
    ATOLL_ASSIGN_OR_RETURN(TemporaryDirectory temporary, TemporaryDirectory::make());
    exported.emplace(std::move(temporary));
    directory = exported->path();
    ATOLL_RETURN_IF_ERROR(export_from_home(source.home, directory));
  }
  ATOLL_ASSIGN_OR_RETURN(const ModelDirectory model, read_model_directory(directory));
  EngineOptions options;
  options.seed.reset();  // the model's own are written
  options.compute_threads = threads > 0 ? threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  ATOLL_ASSIGN_OR_RETURN(auto engine, Engine::create(model.config, options));
  engine->write_parameters(model.parameters);
  return engine;
}

}  // namespace atl
