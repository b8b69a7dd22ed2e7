// HEED_API before the name of a header's namespace exports what the header declares from heed's shared libraries. Everything else is
// hidden. Headers that programs or another library of heed include have it.
#pragma once

#define HEED_API [[gnu::visibility("default")]]
