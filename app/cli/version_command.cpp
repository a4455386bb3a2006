#include "app/cli/version_command.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/cli/build_facts.h"
#include "app/cli/command.h"
#include "kernels/instruction_set.h"
#include "kernels/model/gemm.h"
#include "kernels/sha256_blocks.h"
#include "net/base/gpu_libraries.h"
#include "net/data/parquet_text.h"

namespace atl {
namespace {

struct Version {
  bool verbose = false, json = false;
};

std::string_view name_of(GemmKernel kernel) {
  switch (kernel) {
    case GemmKernel::kPlain: return "plain";
    case GemmKernel::kAvx2: return "avx2";
    case GemmKernel::kAvx512: return "avx512";
    case GemmKernel::kAvx512Bf16: return "avx512-bf16";
  }
  return "unknown";
}

// ncclGetVersion's number (nccl.h): 10000 major + 100 minor + patch. Empty: NCCL does not open, or does not say.
std::string nccl_version() {
  const auto library = open_gpu_library(GpuLibrary::kNccl);
  if (!library.ok()) return {};
  const auto get_version = library->function<int(int*)>("ncclGetVersion");
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0) return {};
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string_view sha256_path() { return has_sha256_blocks() ? "sha-ni" : "openssl"; }

nlohmann::json as_json() {
  const BuildFacts& facts = build_facts();
  nlohmann::json missing = nlohmann::json::array();
  for (const MissingLibrary& library : missing_gpu_libraries()) missing.push_back(name_of(library.library));
  return {{"version", ATOLL_VERSION},
          {"commit", facts.commit},
          {"compiler", facts.compiler},
          {"build_type", facts.build_type},
          {"libtorch", facts.libtorch},
          {"cuda", facts.cuda},
          {"trains_on_gpus", facts.trains_on_gpus},
          {"gpu_libraries_missing", missing},
          {"nccl", nccl_version()},
          {"reads_parquet", reads_parquet()},
          {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
          {"processor",
           {{"kernels", instruction_set_name(chosen_instruction_set())},
            {"bf16_products", name_of(chosen_gemm_kernel())},
            {"sha256", sha256_path()}}}};
}

std::string as_text(const nlohmann::json& version) {
  const auto word = [&](const char* key, const char* otherwise) {
    const auto text = version.at(key).get<std::string>();
    return text.empty() ? otherwise : text;
  };
  std::string missing;
  for (const nlohmann::json& name : version.at("gpu_libraries_missing")) {
    missing += (missing.empty() ? "" : ", ") + name.get<std::string>();
  }
  const nlohmann::json& processor = version.at("processor");
  return fmt::format(
      "commit     {}\n"
      "compiler   {}, {}\n"
      "libtorch   {}\n"
      "CUDA       {}\n"
      "GPUs       {}\n"
      "NCCL       {}\n"
      "OpenSSL    {}\n"
      "Parquet    {}\n"
      "processor  kernels {}, bf16 products {}, SHA-256 {}\n",
      word("commit", ""), word("compiler", ""), word("build_type", ""), word("libtorch", "none: no trainer was built"),
      word("cuda", "no kernels were compiled"),
      !version.at("trains_on_gpus").get<bool>() ? "training on them was not built"
      : missing.empty()                         ? "all libraries are here"
                                                : "not here: " + missing,
      word("nccl", "not here"), word("openssl", ""),
      version.at("reads_parquet").get<bool>() ? "is read"
                                              : "is not read: Apache Arrow was not there when this was built",
      processor.at("kernels").get<std::string>(), processor.at("bf16_products").get<std::string>(),
      processor.at("sha256").get<std::string>());
}

}  // namespace

void add_version_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Version>();
  CLI::App* sub = app.add_subcommand("version", "Print the version, and what it was built of");
  sub->footer("Examples:\n  atoll version\n  atoll version --verbose");
  sub->add_flag("-v,--verbose", command->verbose, "Also commit, compiler, libraries, and what this processor runs");
  sub->add_flag("--json", command->json, "Print all of it as JSON");
  sub->callback([command, &context] {
    std::ostream& out = context.console.out;
    if (command->json) {
      out << as_json().dump() << std::endl;
      return;
    }
    out << "atoll " ATOLL_VERSION "\n";
    if (command->verbose) out << as_text(as_json());
    out << std::flush;
  });
}

}  // namespace atl
