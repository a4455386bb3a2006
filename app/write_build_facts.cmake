# Writes the source of app/cli/build_facts.h where it would be another. Script arguments: OUTPUT, SOURCE_DIR, COMPILER, BUILD_TYPE,
# LIBTORCH, CUDA, TRAINS_ON_GPUS.
set(commit unknown)
find_program(git git)
if(git)
  execute_process(COMMAND "${git}" -C "${SOURCE_DIR}" describe --always --abbrev=40 --dirty=-modified --exclude=*
    OUTPUT_VARIABLE described RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(failed EQUAL 0 AND described MATCHES "^[0-9a-f]+(-modified)?$")
    set(commit "${described}")
  endif()
endif()
set(trains false)
if(TRAINS_ON_GPUS)
  set(trains true)
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
#include "app/cli/build_facts.h"

namespace atl {

const BuildFacts& build_facts() {
  static constexpr BuildFacts facts{.commit = "@commit@", .compiler = "@COMPILER@", .build_type = "@BUILD_TYPE@",
                                    .libtorch = "@LIBTORCH@", .cuda = "@CUDA@", .trains_on_gpus = @trains@};
  return facts;
}

}  // namespace atl
]])
