// Result<T>, Error, and the macros that pass errors on.
#pragma once

#include "support/result.h"
