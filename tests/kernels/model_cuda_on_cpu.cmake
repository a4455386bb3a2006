# The tests of the model's CUDA kernels on the emulator of tests/cuda_on_cpu, and that they find mistakes. The same
# sources are built for a GPU where there is a toolkit (CMakeLists.txt).
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(kernels_dir "${PROJECT_SOURCE_DIR}/kernels/model")
atoll_cuda_on_cpu_library(atoll_model_cuda_on_cpu
  SOURCES ${kernels_dir}/adamw.cu ${kernels_dir}/attention.cu ${kernels_dir}/attention_backward.cu
          ${kernels_dir}/cached_attention.cu ${kernels_dir}/cross_entropy.cu ${kernels_dir}/embed.cu
          ${kernels_dir}/log_probability.cu ${kernels_dir}/rms_norm.cu ${kernels_dir}/rope.cu ${kernels_dir}/swiglu.cu)

# A test's own object files: a test that runs, and those of planted mistakes, are linked of them.
foreach(topic IN ITEMS attention cached_attention model optimizer)
  set(name ${topic}_cuda_on_cpu_test)
  set(moc "${CMAKE_CURRENT_BINARY_DIR}/moc_on_cpu/${topic}_cuda_test.moc")
  add_custom_command(OUTPUT "${moc}" DEPENDS ${topic}_cuda_test.cpp VERBATIM
    COMMAND Qt6::moc -DQT_NO_KEYWORDS -o "${moc}" "${CMAKE_CURRENT_SOURCE_DIR}/${topic}_cuda_test.cpp")
  add_library(${name}_objects OBJECT ${topic}_cuda_test.cpp "${moc}")
  target_include_directories(${name}_objects PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/moc_on_cpu" "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${name}_objects PRIVATE ATOLL_CUDA_ON_CPU QT_NO_KEYWORDS)
  target_compile_options(${name}_objects PRIVATE -O1)
  target_link_libraries(${name}_objects PUBLIC atoll_cuda_on_cpu Qt6::Test PRIVATE atoll_flags)
  add_executable(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests" LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PRIVATE ${name}_objects atoll_model_cuda_on_cpu atoll_flags)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 400)
endforeach()

# atoll_model_cuda_plant(KERNELS TOPIC FUNCTION OLD NEW): the test's function fails once OLD in KERNELS.cu is NEW.
function(atoll_model_cuda_plant kernels topic function old new)
  set(name ${kernels}_cuda_mistake)
  atoll_cuda_on_cpu_transform(made ${name} SOURCES ${kernels_dir}/${kernels}.cu PLANT "${old}" "${new}")
  add_library(${name}_kernels OBJECT ${made})
  atoll_cuda_on_cpu_compile(${name}_kernels)
  add_executable(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests" LINKER_LANGUAGE CXX)
  # Object files come before the archive, of which the file of these kernels is then not asked for.
  target_link_libraries(${name} PRIVATE
    ${topic}_cuda_on_cpu_test_objects ${name}_kernels atoll_model_cuda_on_cpu atoll_flags)
  add_test(NAME ${name} COMMAND ${name} ${function})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 400
    PASS_REGULAR_EXPRESSION "FAIL!  : [A-Za-z]+::${function}")
endfunction()
atoll_model_cuda_plant(adamw optimizer adamw_follows_fp64_and_rounds_its_parameters
  "sqrtf(v[k]) * inverse_correction2 + betas.epsilon" "(sqrtf(v[k]) + betas.epsilon) * inverse_correction2")
atoll_model_cuda_plant(attention attention forward_follows_fp64 "sum[i] *= shrink[i]" "sum[i] *= 1.0f")
atoll_model_cuda_plant(attention_backward attention backward_follows_fp64 "dp[i][j] - dot" "dp[i][j] + dot")
atoll_model_cuda_plant(cached_attention cached_attention attention_over_a_cache_follows_fp64
  "all += part[column] * weight" "all += part[column]")
atoll_model_cuda_plant(log_probability cached_attention log_probabilities_follow_fp64
  "largest.column == label" "largest.column <= label")
atoll_model_cuda_plant(cross_entropy model cross_entropy_and_its_gradient_follow_fp64
  "column + k == largest.column" "x[k] == largest.value")
atoll_model_cuda_plant(embed model embed_backward_adds_in_ascending_order_of_rows "i < end" "i + 1 < end")
atoll_model_cuda_plant(rms_norm model rms_norm_backward_follows_fp64
  "x[h][k] * inverse * mean" "x[h][k] * mean")
atoll_model_cuda_plant(rope model rope_turns_the_pairs_of_the_first_heads
  "b[k] * cosine[k] + a[k] * s" "b[k] * cosine[k] - a[k] * s")
atoll_model_cuda_plant(swiglu model swiglu_and_its_gradient_follow_fp64
  "1.0f + gate[k] * (1.0f - s)" "1.0f + gate[k] * s")
