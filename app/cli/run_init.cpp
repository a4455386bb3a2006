#include "app/cli/run_init.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/agent/agent_config.h"
#include "app/cli/text.h"
#include "app/cli/validate_run.h"
#include "app/cli/validators.h"
#include "net/control/home.h"
#include "net/data/dataset.h"
#include "net/hub/hub.h"
#include "net/model/config.h"
#include "net/model/layout.h"
#include "net/store/state_download.h"
#include "net/store/store_settings.h"

namespace atl {

void add_run_options(CLI::App& sub, NewRun& run) {
  RunOverrides& overrides = run.overrides;
  sub.add_option("--preset", run.preset, fmt::format("{}, or a file", fmt::join(preset_names(), ", ")))
      ->capture_default_str();
  sub.add_option("--model", overrides.model, "Model: a preset's name, or a HuggingFace config.json");
  sub.add_option("--inner-steps", overrides.inner_steps, "Inner steps a round (H)")->check(whole_number(1, 1'000'000));
  sub.add_option("--fragments", overrides.fragments,
                 "Parts of the model that are averaged in turn, one a round; with 2 or more islands train on meanwhile")
      ->check(whole_number(1, kMaxFragments));
  sub.add_option("--rounds", overrides.max_rounds, "The run ends after so many; 0: when stopped")
      ->check(whole_number(0, UINT32_MAX));
  sub.add_option("--wire", overrides.wire, "How gradients travel")
      ->check(CLI::IsMember(std::vector<std::string>(kRunWireFormatNames.begin(), kRunWireFormatNames.end())));
  sub.add_option("--batch", overrides.sequences_per_step, "Sequences an inner step and island")
      ->check(whole_number(1, 1 << 20));
  sub.add_option("--sequence-length", overrides.sequence_length, "Tokens a sequence")->check(whole_number(1, 1 << 20));
  sub.add_option("--lr", overrides.learning_rate, "Peak learning rate of the inner optimiser")
      ->check(positive_number());
  sub.add_option("--warmup-steps", overrides.warmup_steps, "Inner steps until the peak")
      ->check(whole_number(0, UINT32_MAX));
  sub.add_option("--decay-steps", overrides.decay_steps,
                 "Inner steps in which the learning rate falls to --final-lr; 0: it stays at its peak")
      ->check(whole_number(0, UINT32_MAX));
  sub.add_option("--decay-start", overrides.decay_start_step,
                 "Inner step of the run at which it begins to fall (default: so that it ends with --rounds)")
      ->check(whole_number(0, UINT32_MAX));
  sub.add_option("--final-lr", overrides.final_learning_rate, "Learning rate at the end of the decay, and after it")
      ->check(number_between(0, 10));
  sub.add_option("--outer-lr", overrides.outer_learning_rate, "Learning rate of the outer optimiser")
      ->check(positive_number());
  sub.add_option("--outer-momentum", overrides.outer_momentum, "Momentum of the outer optimiser")
      ->check(number_between(0, 0.999999));
  sub.add_option("--validate-every", overrides.validate_every, "Rounds between validations; 0: never")
      ->check(whole_number(0, UINT32_MAX));
  sub.add_option("--quorum", overrides.quorum,
                 "Islands that must have trained for a round to count; with 2 or more no island is ever believed alone")
      ->check(whole_number(1, 1024));
  sub.add_option(
         "--when-lost", overrides.when_lost,
         "When nobody holds the newest state: ask (atoll hub rollback), or roll back by itself, 10 rounds at most")
      ->check(CLI::IsMember({"ask", "rollback"}));
  sub.add_option("--keep-states", overrides.keep_states,
                 "Outer states that each island keeps, 8 bytes a parameter each")
      ->check(whole_number(1, 8));
  sub.add_option("--safe-copies", overrides.safe_copies,
                 "A round counts as safe when so many islands (all, where there are fewer) have it on their disks")
      ->check(whole_number(1, 1024));
  auto* store =
      sub.add_option("--upload-to", overrides.upload_store,
                     "Object store for outer states, s3://BUCKET/PREFIX; written by islands whose owners gave "
                     "them its credentials (store.bucket, store.credentials_file)");
  auto* every = sub.add_option("--upload-every", overrides.upload_every, "Rounds between two of them")
                    ->check(whole_number(1, UINT32_MAX));
  store->needs(every);
  every->needs(store);
  sub.add_option("--norm-bound", overrides.norm_bound,
                 "Work whose norm is so many times the others' is left out; 0: none is")
      ->check(number_between(0, 1e6));
  sub.add_option("--validation-rise", overrides.validation_rise,
                 "Nats above the best of late at which the run stops; 0: it does not")
      ->check(number_between(0, 1e6));
  sub.add_option("--seed", overrides.seed, "Of the initial parameters and the order of the data")
      ->check(whole_number(0, UINT64_MAX));
}

std::string describe_learning_rate(const InnerOptimizerConfig& inner) {
  const std::string warmup =
      inner.warmup_steps == 0 ? "" : fmt::format(" after {} of warm-up", format_number_of(inner.warmup_steps, "step"));
  if (inner.decay_steps == 0) return fmt::format("learning rate {}{}, no decay", inner.learning_rate, warmup);
  return fmt::format("learning rate {}{}, falls to {} from step {} to step {}", inner.learning_rate, warmup,
                     inner.final_learning_rate, format_count(inner.decay_start_step),
                     format_count(inner.decay_start_step + inner.decay_steps));
}

namespace {

// Model and parameters are the published state's; islands fetch these from where it is.
Status begin_from(const std::string& from, const RunOverrides& overrides, HubInitOptions& options) {
  if (overrides.model) {
    return Error{ErrorCode::kInvalidArgument, "--from brings its model with it; leave --model out"};
  }
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, find_agent_home(""));
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(home)));
  const StoreSettings settings = store_settings(config);
  ATOLL_ASSIGN_OR_RETURN(const StoreUrl url, parse_store_url(from));
  ATOLL_ASSIGN_OR_RETURN(const StoreAccess access, access_as_told(settings, url));
  ATOLL_ASSIGN_OR_RETURN(StoreClient client, StoreClient::create(access));
  const AbortSignal abort;
  ATOLL_ASSIGN_OR_RETURN(const PublishedState state, find_published_state(client, url.prefix, "", abort));
  ATOLL_RETURN_IF_ERROR(check_published_state(client, state, abort));
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(state.manifest.model_json));
  const auto numel = static_cast<std::uint64_t>(canonical_layout(model).numel);
  if (state.manifest.state.state_bytes != 2 * sizeof(float) * numel) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} names a model of another size than its state", from)};
  }
  options.run.model_json = state.manifest.model_json;
  options.run.initial_state = to_string(with_place({url.bucket, state.prefix, url.endpoint, url.region}, settings));
  options.run.initial_state_sha256 = state.manifest_sha256;
  options.initial_hash = state.manifest.initial_hash;
  return ok_status();
}

}  // namespace

Result<RunConfig> init_run(const NewRun& run, const std::filesystem::path& hub_directory) {
  ATOLL_RETURN_IF_ERROR(validate_run_name(run.name));
  // Before anything is made: is there a dataset that this run can use?
  ATOLL_ASSIGN_OR_RETURN(const Dataset dataset, Dataset::open(run.data));
  HubInitOptions options;
  options.directory = hub_directory;
  options.dataset_directory = std::filesystem::absolute(run.data);
  options.operator_name = run.operator_name;
  ATOLL_ASSIGN_OR_RETURN(options.run, make_run(run.preset, run.name, run.overrides));
  if (!options.run.upload_store.empty()) ATOLL_RETURN_IF_ERROR(parse_store_url(options.run.upload_store));
  if (!run.from.empty()) ATOLL_RETURN_IF_ERROR(begin_from(run.from, run.overrides, options));
  ATOLL_RETURN_IF_ERROR(validate_run(options.run, dataset.manifest().vocab_size));
  if (dataset.sequences(Split::kTrain, options.run.sequence_length) == 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the dataset in {} is shorter than one sequence of {} tokens; prepare more text, or choose a "
                    "shorter --sequence-length",
                    run.data, options.run.sequence_length)};
  }
  return hub_init(options);
}

}  // namespace atl
