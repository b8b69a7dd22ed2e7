// heed lab heads RUN: the page of a run's heads.
#pragma once

#include <string>
#include <vector>

namespace heed::cli {

// words: those behind "heads". out: of the page; empty: RUN/heads
void run_lab_heads(const std::vector<std::string>& words, const std::string& out, bool json, bool quiet);

}  // namespace heed::cli
