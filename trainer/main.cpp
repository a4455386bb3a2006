// atoll-trainer, which `atoll` starts.
#include "trainer/program/command_line.h"

int main(int argc, char** argv) { return atl::run_trainer_cli(argc, argv); }
