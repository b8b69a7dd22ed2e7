// Ends a launcher that hangs.
#pragma once

namespace heed {

// mpirun, and orted on other machines, wait for unreachable daemons until TCP times out, which takes a quarter of an hour. This starts a
// process that kills the launcher of this process if it still runs after that many seconds.
void end_launcher_after(unsigned seconds);

}  // namespace heed
