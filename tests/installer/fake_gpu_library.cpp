// A shared library for tests that stand for NVIDIA's: it loads, and says that it is a fake.
extern "C" int atoll_fake_gpu_library() { return 42; }
