// The files of a run that grow while it trains: what was added since a cursor, as server-sent events.
#pragma once

#include <array>

#include "heed/io/json.h"

namespace heed::serve {

// Bytes of metrics.jsonl, heads.jsonl and log.txt that the client has seen.
class RunCursor {
 public:
  static RunCursor at_end(const Path& run);
  static RunCursor parse(const std::string& text);  // "120-0-310"; a FileError if it is not one
  std::string text() const;

  // New whole lines as events, in order; the cursor moves past them. Of lines of more than a MiB only the end is shown. A file that became
  // shorter was rewound to a checkpoint: continues at its end.
  std::string next_events(const Path& run);

 private:
  std::array<int64_t, 3> bytes_ = {};
};

Json run_row(const Json& line);  // a line of metrics.jsonl -> {"epoch", "step", "figures"}

}  // namespace heed::serve
