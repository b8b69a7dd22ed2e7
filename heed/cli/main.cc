// The program. Its commands are the other files of this folder.
#include "heed/cli/run.h"

int main(int argc, char** argv) { return heed::cli::run(argc, argv); }
