// heed lab heads RUN: a page about the heads of a run.
#pragma once

#include <string>
#include <vector>

namespace heed::cli {

// arguments: those after "heads". out: the folder of the page; empty: RUN/heads
void run_lab_heads(const std::vector<std::string>& arguments, const std::string& out, bool json, bool quiet);

}  // namespace heed::cli
