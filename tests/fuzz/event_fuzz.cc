// Any bytes as the event file of a resumed run: complete records are kept, the rest is truncated, and records can be added.
#include <cstdlib>

#include "heed/train/event_file.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  const std::string name = "events.out.tfevents.1.heed";
  fuzz::write_file(name, fuzz::text_of(data, size));
  try {
    int64_t before = 0, after = 0;
    {
      EventFile events(fuzz::folder());
      before = events.size();
      events.scalar("loss", 1, 0.5);
      after = events.size();
    }
    if (before <= 0 || after <= before) std::abort();
    EventFile again(fuzz::folder());  // all written records are complete
    if (again.size() != after) std::abort();
    again.truncate_to(before);
    if (again.size() != before) std::abort();
  } catch (const FileError&) {
  }
}
