# What CMake 3.25 does once it has found a toolkit that is no longer shipped with this library.
set_property(TARGET CUDA::nvToolsExt PROPERTY DEPRECATION "nvToolsExt has been superseded by nvtx3")
set(CUDAToolkit_FOUND ON)
