// Reports of experiments that train models, kept in the user's cache folder by a hash of the settings and of the program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heed/io/file.h"
#include "heed/io/json.h"
#include "heed/lab/result.h"

namespace heed::lab {

struct CachedReport {
  Report report = {};
  double seconds = 0;  // that it took
};

// A report as JSON that read_report() reads back with every bit of its numbers, also NaN and infinity.
Json archived(const Report& report);
Report read_report(const Json& json);

// $XDG_CACHE_HOME/heed/lab or ~/.cache/heed/lab; empty if neither is set.
Path cache_folder();

// Of one experiment with its effective settings, by this program: a rebuilt program has other keys.
class ReportCache {
 public:
  explicit ReportCache(Path folder) : folder_(std::move(folder)) {}  // empty: nothing is kept

  std::optional<CachedReport> find(const std::string& experiment, const Json& settings) const;       // none: absent or unreadable
  void keep(const std::string& experiment, const Json& settings, const CachedReport& result) const;  // a full disk is no error
  void forget(const std::string& experiment, const Json& settings) const;
  bool can_keep() const;  // whether reports can be written

 private:
  Path file_of(const std::string& experiment, const Json& settings) const;

  Path folder_;
};

bool trains_models(const Experiment& experiment);  // for seconds or minutes, with no result that depends on the clock alone
// run_one(), except that the reports of experiments that train models come from the cache, or are kept there.
Result run_or_find(const Experiment& experiment, const std::vector<std::string>& settings, const ProgressCallback& progress,
                   const ReportCache& cache, Device gpu = kCpu);

}  // namespace heed::lab
