// glob: names matched by patterns such as `attention.*` and `*mlp*`.
#pragma once

#include <string_view>

namespace hologram::holotensor {

// `*` stands for any characters (dots and slashes too), `?` for one, `\` takes the next literally.
// The whole name must match. Linear in memory, and name times pattern in time at worst.
bool glob_matches(std::string_view pattern, std::string_view name);

}  // namespace hologram::holotensor
